import{b as a,c as b}from"./chunk-C3NN7BBM.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-WWAJKHDP.js";import"./chunk-N75DWFKP.js";import"./chunk-RMH4X7O6.js";import"./chunk-WGQLCW4T.js";import"./chunk-FR47QBA5.js";import"./chunk-M5NTOY7X.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-APA6JEFT.js.map
