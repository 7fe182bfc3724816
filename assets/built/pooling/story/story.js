import{a,b,c}from"../../chunks/chunk-J66P6GMP.js";import"../../chunks/chunk-FR47QBA5.js";import"../../chunks/chunk-M5NTOY7X.js";import"../../chunks/chunk-FY3BTKY4.js";export{c as Story,a as linkAddress,b as origin};
//# sourceMappingURL=story.js.map
