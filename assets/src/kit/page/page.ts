// Fixes around all pages for things that Streamlit leaves open. pages/shared/server/head.py adds
// this module to the head of the document.
import "./access.ts";
import "./copy_link.ts";
import "./sidebar.ts";

// The forms of New run write every change into the address. Streamlit would add a history entry for
// each change, so that leaving the page would take as many presses of Back.
const FORMS = /\/(data|settings)$/;
const push = history.pushState;
history.pushState = function (state, title, url) {
  const samePage =
    FORMS.test(location.pathname) &&
    new URL(url ?? "", location.href).pathname === location.pathname;
  (samePage ? history.replaceState : push).call(this, state, title, url);
};

// At this width Streamlit's menu covers the page as a drawer.
const NARROW = matchMedia("(max-width: 768px)");

// Close the drawer once a page is chosen in it, or the brand, which leads Home. Streamlit closes
// the drawer only if the user agent is a phone's, and then there is no open drawer left to close.
// Links have their default prevented because Streamlit opens them in place; the brand is a button.
const CHOICES =
  '[data-testid="stSidebarNavLink"], [data-testid="stSidebar"] [data-testid="stLogoLink"]';
document.addEventListener("click", (event) => {
  const chosen = event.target instanceof Element && event.target.closest(CHOICES);
  if (!chosen || !NARROW.matches) return;
  if (chosen instanceof HTMLAnchorElement && !event.defaultPrevented) return;
  const opened = '[data-testid="stSidebarCollapseButton"] [aria-expanded="true"]';
  setTimeout(() => {
    const button = document.querySelector(opened);
    if (button instanceof HTMLElement) button.click();
  });
});
