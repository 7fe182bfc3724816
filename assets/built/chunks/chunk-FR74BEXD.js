import{c as o}from"./chunk-RVAQAOOT.js";function m(r){let n=requestAnimationFrame(function t(i){n=requestAnimationFrame(t),r(i)&&cancelAnimationFrame(n)});return()=>cancelAnimationFrame(n)}function c(r,n,t=0){let i=performance.now()+t;return o()?(n(1),()=>{}):m(a=>{let e=Math.min(Math.max((a-i)/r,0),1);return n(e*e*(3-2*e)),e>=1})}export{m as a,c as b};
//# sourceMappingURL=chunk-FR74BEXD.js.map
