import{a,b,c,d}from"../../chunks/chunk-EPE6P3JE.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-LKDJDMQO.js";import"../../chunks/chunk-FY3BTKY4.js";export{b as formula,a as katex,c as prose,d as syntaxTrees};
//# sourceMappingURL=formula.js.map
