import{b as a,c as b}from"./chunk-B4QP7SLA.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-UYI2HYBI.js";import"./chunk-QNISAFIT.js";import"./chunk-WGQLCW4T.js";import"./chunk-AZQ35XUY.js";import"./chunk-HT3JHWPT.js";import"./chunk-RVAQAOOT.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-XDH35SFQ.js.map
