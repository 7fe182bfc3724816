import{b as a,c as b}from"./chunk-QYQIIYER.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-WWAJKHDP.js";import"./chunk-RFPRG5JW.js";import"./chunk-6L4QBRHV.js";import"./chunk-WGQLCW4T.js";import"./chunk-FR47QBA5.js";import"./chunk-M5NTOY7X.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-3YMQIAR4.js.map
