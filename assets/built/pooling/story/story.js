import{a,b,c}from"../../chunks/chunk-UHIQWU4C.js";import"../../chunks/chunk-RBLQH2H3.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-PLEBEBAG.js";import"../../chunks/chunk-FY3BTKY4.js";export{c as Story,a as linkAddress,b as origin};
//# sourceMappingURL=story.js.map
