import{b as a,c as b}from"./chunk-KHNAIEIE.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-44NTDX3S.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-4WS3YHKZ.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-MFUUPW2W.js.map
