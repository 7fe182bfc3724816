import{a,b,c,d,e,f}from"../../chunks/chunk-KOHSGHGR.js";import"../../chunks/chunk-M5NTOY7X.js";import"../../chunks/chunk-FY3BTKY4.js";export{a as KEY,d as enter,e as film,b as present,f as presentButton,c as withdraw};
//# sourceMappingURL=present.js.map
