import{b as a,c as b}from"./chunk-FCLIYDPE.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-3I2J2F2Q.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-FECVBK5I.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-4I7NNPPX.js.map
