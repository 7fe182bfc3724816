import{a,b,c,d,e,f}from"../../chunks/chunk-AZQ35XUY.js";import"../../chunks/chunk-RVAQAOOT.js";import"../../chunks/chunk-FY3BTKY4.js";export{a as KEY,d as enter,f as film,b as present,e as shareCard,c as withdraw};
//# sourceMappingURL=present.js.map
