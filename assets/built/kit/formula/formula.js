import{a,b,c,d}from"../../chunks/chunk-WWAJKHDP.js";import"../../chunks/chunk-FR47QBA5.js";import"../../chunks/chunk-M5NTOY7X.js";import"../../chunks/chunk-FY3BTKY4.js";export{b as formula,a as katex,c as prose,d as syntaxTrees};
//# sourceMappingURL=formula.js.map
