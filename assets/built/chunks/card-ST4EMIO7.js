import{b as a,c as b}from"./chunk-LQS43A6M.js";import"./chunk-RZFYEJEL.js";import"./chunk-UXLSPCXA.js";import"./chunk-YUVWUCPA.js";import"./chunk-74QSWNKC.js";import"./chunk-WGQLCW4T.js";import"./chunk-7T6L4EDE.js";import"./chunk-HT3JHWPT.js";import"./chunk-PLEBEBAG.js";import"./chunk-FY3BTKY4.js";export{b as cardImage,a as cardOf};
//# sourceMappingURL=card-ST4EMIO7.js.map
