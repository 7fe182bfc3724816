// Clicks on the neighbour strips in st.html, sent to Python: a plain link would reload the whole
// app. With a modifier key it remains a link.

/** @import { Mounted, SetState } from "../../../kit/types.js" */

/** @type {WeakMap<HTMLElement, (event: MouseEvent) => void>} */
const listeners = new WeakMap();

/** @param {Mounted & { setTriggerValue: SetState }} component */
export function render({ parentElement, setTriggerValue }) {
  unmount(parentElement);
  const click = (/** @type {MouseEvent} */ event) => {
    const link =
      event.target instanceof Element
        ? /** @type {HTMLElement | null} */ (event.target.closest(".failure a[data-role]"))
        : null;
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    setTriggerValue("chosen", { role: link.dataset.role, index: Number(link.dataset.index) });
  };
  listeners.set(parentElement, click);
  document.addEventListener("click", click);
}

/** @param {HTMLElement} element */
export function unmount(element) {
  const click = listeners.get(element);
  if (click) document.removeEventListener("click", click);
  listeners.delete(element);
}
