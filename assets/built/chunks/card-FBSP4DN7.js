import{b as a,c as b}from"./chunk-WNVX3WPO.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-EPE6P3JE.js";import"./chunk-NDTHL5QT.js";import"./chunk-EKYUFL5H.js";import"./chunk-WGQLCW4T.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-FBSP4DN7.js.map
