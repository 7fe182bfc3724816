import{b as a,c as b}from"./chunk-GGKNPPCR.js";import"./chunk-A6ISQEME.js";import"./chunk-UXLSPCXA.js";import"./chunk-HZ7KM5EK.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-JNJW22QN.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-G3EVBDN7.js.map
