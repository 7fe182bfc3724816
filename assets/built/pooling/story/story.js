import{a,b,c}from"../../chunks/chunk-XXJKNVA5.js";import"../../chunks/chunk-CMUIJOB7.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-RVAQAOOT.js";import"../../chunks/chunk-FY3BTKY4.js";export{c as Story,a as linkAddress,b as origin};
//# sourceMappingURL=story.js.map
