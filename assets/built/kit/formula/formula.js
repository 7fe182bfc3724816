import{a,b}from"../../chunks/chunk-NXSQ5HFE.js";import"../../chunks/chunk-FR47QBA5.js";import"../../chunks/chunk-HZKF6KBA.js";export{a as formula,b as prose};
//# sourceMappingURL=formula.js.map
