// Work around a bug of Streamlit 1.67: it removes an empty sidebar when a script run ends, but
// checks what the browser has drawn by then. If the browser draws later, the grey strip of the
// previous page's sidebar stays until the script runs again. This module makes the script run
// again, once.
import { watchDocument } from "./settled.ts";

const CONTENT =
  '[data-testid="stSidebarNav"], [data-testid="stSidebarUserContent"] [data-testid="stElementContainer"]';
let asked = ""; // address of the last rerun

watchDocument(() => {
  const sidebar = document.querySelector('[data-testid="stSidebar"]');
  if (!sidebar || sidebar.querySelector(CONTENT)) asked = "";
  else if (
    asked !== location.pathname &&
    document.querySelector('[data-test-script-state="notRunning"]')
  ) {
    asked = location.pathname;
    // as if the visitor had navigated back to this address
    dispatchEvent(new PopStateEvent("popstate"));
  }
});
