// What Streamlit leaves open around all pages; pages/shared/server/head.py puts it into the head of
// the document.
import "./access.js";
import "./copy_link.js";
import "./sidebar.js";

// The forms of Data and Train write every change into the address. Streamlit would add each one to
// the history, so that Back would need as many presses to leave the page.
const FORMS = /\/(data|train)$/;
const push = history.pushState;
history.pushState = function (state, title, url) {
  const samePage =
    FORMS.test(location.pathname) &&
    new URL(url ?? "", location.href).pathname === location.pathname;
  (samePage ? history.replaceState : push).call(this, state, title, url);
};

// there Streamlit's menu lies over the page, as a drawer
const NARROW = matchMedia("(max-width: 768px)");

// The drawer closes once a page is chosen in it, or the brand, which leads Home. Streamlit does so
// itself only where the browser calls itself a phone's, and then there is no open drawer left to
// close. It has prevented the default of a link that it opens in place; the brand is a button.
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
