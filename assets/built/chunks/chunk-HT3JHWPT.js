var e=import.meta.url.replace(/(\/api\/assets\/[^/]+\/).*/,"$1"),s=t=>new URL(t,e).href;export{s as a};
//# sourceMappingURL=chunk-HT3JHWPT.js.map
