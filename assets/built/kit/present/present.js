import{a,b,c,d,e,f}from"../../chunks/chunk-RV6RTNG6.js";import"../../chunks/chunk-M5NTOY7X.js";export{a as KEY,d as enter,e as film,b as present,f as presentButton,c as withdraw};
//# sourceMappingURL=present.js.map
