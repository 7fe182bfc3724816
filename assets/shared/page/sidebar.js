// Streamlit (1.67) drops a sidebar that is left empty when a run of the script ends, but looks at
// what the browser has drawn by then: where that comes later, the grey strip of Train stands on the
// next page until its script runs again. Here it runs again, once.
import { settled } from "./settled.js";

const CONTENT =
  '[data-testid="stSidebarNav"], [data-testid="stSidebarUserContent"] [data-testid="stElementContainer"]';
let asked = ""; // where it was

settled(() => {
  const sidebar = document.querySelector('[data-testid="stSidebar"]');
  if (!sidebar || sidebar.querySelector(CONTENT)) asked = "";
  else if (
    asked !== location.pathname &&
    document.querySelector('[data-test-script-state="notRunning"]')
  ) {
    asked = location.pathname;
    dispatchEvent(new PopStateEvent("popstate")); // as if one had come back to this address
  }
});
