import{a,b,c,d}from"../../chunks/chunk-M27HMLIL.js";import"../../chunks/chunk-HZKF6KBA.js";export{a as KEY,b as present,d as presentButton,c as withdraw};
//# sourceMappingURL=present.js.map
