{
  const until = performance.now() + 30_000; // the list may be rendered after its script
  const scroll = () => {
    const list = document.querySelector(".st-key-truth_scroll");
    const chosen = list?.querySelector("input:checked")?.closest("label");
    if (!list || !chosen) {
      if (performance.now() < until) requestAnimationFrame(scroll);
      return;
    }
    const room = list.getBoundingClientRect(),
      place = chosen.getBoundingClientRect();
    // the last 32 px fade
    if (place.top < room.top || place.bottom > room.bottom - 32)
      list.scrollTop += place.top - room.top - room.height / 3;
  };
  scroll();
}
