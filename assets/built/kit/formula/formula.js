import{a,b,c}from"../../chunks/chunk-FY4MEZAS.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-LKDJDMQO.js";import"../../chunks/chunk-FY3BTKY4.js";export{b as formula,a as katex,c as syntaxTrees};
//# sourceMappingURL=formula.js.map
