import{b as a,c as b}from"./chunk-O4ND644K.js";import"./chunk-A6ISQEME.js";import"./chunk-UXLSPCXA.js";import"./chunk-HVWJ4LAJ.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-CXHNN6GP.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-GH2SKPUT.js.map
