import{b as a,c as b}from"./chunk-OV4V4TFL.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-DAJMRZ3A.js";import"./chunk-FY4MEZAS.js";import"./chunk-WGQLCW4T.js";import"./chunk-OEFWTFTJ.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-QPEAEUQA.js.map
