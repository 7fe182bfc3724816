import{a,b,c,d,e,f,g}from"../../chunks/chunk-FECVBK5I.js";import"../../chunks/chunk-PLEBEBAG.js";import"../../chunks/chunk-FY3BTKY4.js";export{a as KEY,d as enter,f as film,b as present,g as presentButton,e as shareCard,c as withdraw};
//# sourceMappingURL=present.js.map
