var o=e=>[...e.querySelectorAll('select[aria-label^="loss"]')],l=e=>[...new Set(o(e).map(t=>t.selectedOptions[0]?.text??""))].join(" and "),s=(e,t)=>[".verdict p",".lessons p.caption, p.caption[aria-live]:not(.hint)"].map(n=>e.querySelector(n)?.textContent?.trim()).find(Boolean)??t?.caption.replace("{loss}",l(e))??"";export{o as a,l as b,s as c};
//# sourceMappingURL=chunk-RZFYEJEL.js.map
