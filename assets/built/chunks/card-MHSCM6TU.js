import{b as a,c as b}from"./chunk-4LXXBXDF.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-OAHPHV3G.js";import"./chunk-QNISAFIT.js";import"./chunk-WGQLCW4T.js";import"./chunk-NXEVXO4Y.js";import"./chunk-HT3JHWPT.js";import"./chunk-RVAQAOOT.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-MHSCM6TU.js.map
