import{b as a,c as b}from"./chunk-EEXK7BD6.js";import"./chunk-DIQCCAYY.js";import"./chunk-UXLSPCXA.js";import"./chunk-EPE6P3JE.js";import"./chunk-A24XYLOX.js";import"./chunk-W2PDPNRT.js";import"./chunk-WGQLCW4T.js";import"./chunk-HT3JHWPT.js";import"./chunk-LKDJDMQO.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-D7GFZOCQ.js.map
