// Links of the view row that carry over what the current view shows. Streamlit renders the row and
// knows only the address with which the page was opened.
import { onward } from "./dom.ts";

// Make the link to another view carry a query. Return a function that undoes this.
// address: of that view, as an address of this server
// query: returns the query at that moment
export function carry(address: string, query: () => string) {
  const { pathname } = new URL(address, location.href);
  const follow = (event: MouseEvent) => {
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
