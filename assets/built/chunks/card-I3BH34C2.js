import{b as a,c as b}from"./chunk-6JBKQXEJ.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-R744F6W6.js";import"./chunk-EPE6P3JE.js";import"./chunk-WGQLCW4T.js";import"./chunk-KSCLM55V.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-I3BH34C2.js.map
