import{b as a,c as b}from"./chunk-EPYT4FKF.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-EPE6P3JE.js";import"./chunk-VWQ5FAME.js";import"./chunk-GJQLJHTB.js";import"./chunk-WGQLCW4T.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-36TY32UV.js.map
