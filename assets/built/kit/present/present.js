import{a,b,c,d,e,f}from"../../chunks/chunk-JJ6J3ELT.js";import"../../chunks/chunk-M5NTOY7X.js";export{a as KEY,d as enter,e as film,b as present,f as presentButton,c as withdraw};
//# sourceMappingURL=present.js.map
