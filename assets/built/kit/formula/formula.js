import{a,b,c}from"../../chunks/chunk-QNISAFIT.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-RVAQAOOT.js";import"../../chunks/chunk-FY3BTKY4.js";export{b as formula,a as katex,c as syntaxTrees};
//# sourceMappingURL=formula.js.map
