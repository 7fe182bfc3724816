import{b as a,c as b}from"./chunk-B33CKVXN.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-WWAJKHDP.js";import"./chunk-47JFA3R6.js";import"./chunk-4MRH3OVM.js";import"./chunk-WGQLCW4T.js";import"./chunk-FR47QBA5.js";import"./chunk-M5NTOY7X.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-JWS67FGW.js.map
