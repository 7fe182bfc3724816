// Where a link of the row under the title takes along what the picture of this view shows: the row
// is Streamlit's, and knows the address as it was when the page was opened.
import { onward } from "./dom.js";

/**
 * Have the link to another view carry a query; the answer is what ends that.
 *
 * @param {string} address of that view, as an address of this server
 * @param {() => string} query of this moment
 */
export function carry(address, query) {
  const { pathname } = new URL(address, location.href);
  const follow = (/** @type {MouseEvent} */ event) => {
    const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event,
      link = target instanceof Element && target.closest(".st-key-views a");
    if (!(link instanceof HTMLAnchorElement) || link.pathname !== pathname) return;
    if (button || ctrlKey || metaKey || shiftKey || altKey) return;
    event.preventDefault();
    event.stopPropagation();
    history.pushState({}, "", onward(pathname, query()));
    dispatchEvent(new PopStateEvent("popstate"));
  };
  document.addEventListener("click", follow, true);
  return () => document.removeEventListener("click", follow, true);
}
