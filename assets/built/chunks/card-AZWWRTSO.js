import{b as a,c as b}from"./chunk-SEDFQW2J.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-EPE6P3JE.js";import"./chunk-5UPIYOTI.js";import"./chunk-TYSTZOD3.js";import"./chunk-WGQLCW4T.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-AZWWRTSO.js.map
