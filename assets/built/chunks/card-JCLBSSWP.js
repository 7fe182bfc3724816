import{b as a,c as b}from"./chunk-LW3W5UOD.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-D6KY6OGW.js";import"./chunk-QNISAFIT.js";import"./chunk-WGQLCW4T.js";import"./chunk-VY4DXZLS.js";import"./chunk-HT3JHWPT.js";import"./chunk-RVAQAOOT.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-JCLBSSWP.js.map
