var o=e=>[...e.querySelectorAll('select[aria-label^="loss"]')],n=e=>o(e).map(t=>t.selectedOptions[0]?.text??"").join(" and "),s=(e,t)=>e.querySelector(".lessons p.caption, p.caption[aria-live]")?.textContent?.trim()||t.caption.replace("{loss}",n(e));export{o as a,n as b,s as c};
//# sourceMappingURL=chunk-DIQCCAYY.js.map
