import{b as a,c as b}from"./chunk-O4YEBEKJ.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-EPE6P3JE.js";import"./chunk-IFQ2RK7I.js";import"./chunk-3352AJCD.js";import"./chunk-WGQLCW4T.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-ZQXYMXVC.js.map
