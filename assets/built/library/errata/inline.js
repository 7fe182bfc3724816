{let r=performance.now()+3e4,n=()=>{let t=document.querySelector(".st-key-truth_scroll"),c=t?.querySelector("input:checked")?.closest("label");if(!t||!c){performance.now()<r&&requestAnimationFrame(n);return}let o=t.getBoundingClientRect(),e=c.getBoundingClientRect();(e.top<o.top||e.bottom>o.bottom-32)&&(t.scrollTop+=e.top-o.top-o.height/3)};n()}
//# sourceMappingURL=inline.js.map
