import{a,b,c}from"../../chunks/chunk-VKX6AMDW.js";import"../../chunks/chunk-FR47QBA5.js";import"../../chunks/chunk-HZKF6KBA.js";export{c as Story,a as linkAddress,b as origin};
//# sourceMappingURL=story.js.map
