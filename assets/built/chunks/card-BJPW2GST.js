import{b as a,c as b}from"./chunk-BY5UWRLS.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-2HQTDC4G.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-QQFXNO4Q.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-BJPW2GST.js.map
