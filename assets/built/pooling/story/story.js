import{a,b,c}from"../../chunks/chunk-G67UGOSN.js";import"../../chunks/chunk-RBLQH2H3.js";import"../../chunks/chunk-HT3JHWPT.js";import"../../chunks/chunk-LKDJDMQO.js";import"../../chunks/chunk-FY3BTKY4.js";export{c as Story,a as linkAddress,b as origin};
//# sourceMappingURL=story.js.map
