// Presentation mode: a page's figure fills the window, opened by a key, a button among the exports,
// or the address. Its modules are loaded on first use.
/** @import { Stage } from "./present/stage.js" */
/** @import { Filmed, Presentable, Presentation } from "./types.js" */
import { el } from "./dom.js";

export const KEY = "t"; // t for theatre
/** @type {{ app: Presentable, about: Presentation } | null} */
let offered = null;
/** @type {Stage | null} */
let stage = null;
let coming = false,
  listening = false;

// Register the component that can be presented; called whenever it receives data.
/**
 * @param {Presentable} app
 * @param {Presentation | null} [about]
 */
export async function present(app, about) {
  if (!about) return;
  const known = offered?.app === app;
  offered = { app, about };
  if (stage && known) stage.about = about;
  if (known) return;
  stage?.down(); // of the component that is replaced
  if (!listening) document.addEventListener("keydown", pressed);
  listening = true;
  if (new URLSearchParams(location.search).get("present") !== "1") return;
  await app.ready;
  if (offered?.app === app) enter();
}

// Unregister a component. The address keeps its presentation parameters, since another component
// may replace it.
/** @param {Presentable} app */
export function withdraw(app) {
  if (offered?.app !== app) return;
  stage?.down();
  offered = null;
}

async function enter() {
  if (!offered || stage || coming) return;
  coming = true;
  const { app } = offered;
  await app.ready;
  const module = await import(new URL("present/stage.js", import.meta.url).href);
  coming = false;
  if (offered?.app !== app) {
    await enter(); // component that was registered meanwhile
    return;
  }
  /** @type {Stage} */
  const next = new module.Stage(app, offered.about, () => (stage = null));
  stage = next;
  await next.enter();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const { ctrlKey, metaKey, altKey, shiftKey, key } = event;
  if (ctrlKey || metaKey || altKey || shiftKey || !offered || typed(event)) return;
  if (key === KEY) {
    if (stage) stage.leave();
    else enter();
    event.preventDefault();
  } else stage?.key(event);
}

// Return true if a key press is meant for a text field or menu.
/** @param {KeyboardEvent} event */
function typed(event) {
  const [target] = event.composedPath();
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=range], [type=checkbox], [type=radio])")) &&
    event.key !== "Escape"
  );
}

/** @param {Filmed} app */
async function film(app) {
  const { record } = await import(new URL("record/record.js", import.meta.url).href);
  record(app);
}

// Return the buttons for presentation and recording among the exports; none if the page has no
// presentation.
/** @param {Filmed & { data: { present?: Presentation | null } }} app */
export const presentButton = (app) =>
  app.data.present
    ? [
        el(
          "button",
          {
            class: "present",
            title: `Show the figure in the whole window (${KEY.toUpperCase()})`,
            onclick: () => enter(),
          },
          "Present",
        ),
        el(
          "button",
          { class: "film", title: "Record a film for slides", onclick: () => film(app) },
          "Film",
        ),
      ]
    : [];
