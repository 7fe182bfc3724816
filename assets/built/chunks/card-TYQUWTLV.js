import{b as a,c as b}from"./chunk-6QMWV2P3.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-XKZJA2PO.js";import"./chunk-QNISAFIT.js";import"./chunk-WGQLCW4T.js";import"./chunk-BUVT4SEL.js";import"./chunk-HT3JHWPT.js";import"./chunk-RVAQAOOT.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-TYQUWTLV.js.map
