// Whether the picture of a page fills the window: by a key, by a button of its exports, or because
// the address says so. What that takes is fetched when it is first asked for.
/** @import { Stage } from "./present/stage.js" */
/** @import { Filmed, Presentable, Presentation } from "./types.js" */
import { el } from "./dom.js";

export const KEY = "t"; // as in theatre
/** @type {{ app: Presentable, about: Presentation } | null} */
let offered = null;
/** @type {Stage | null} */
let stage = null;
let coming = false,
  listening = false;

// A component tells what it shows a lecture, as often as it hears of its data.
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
  stage?.down(); // of what it replaces
  if (!listening) document.addEventListener("keydown", pressed);
  listening = true;
  if (new URLSearchParams(location.search).get("present") !== "1") return;
  await app.ready;
  if (offered?.app === app) enter();
}

// It goes. The address keeps what it says of a lecture: another may come in its place.
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
    await enter(); // what came in its place meanwhile
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

// Whether a key is meant for what is written or chosen there.
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

// The buttons for it and for a film, among the exports of a page; none where the page shows no
// lecture anything.
/** @param {Filmed & { data: { present?: Presentation | null } }} app */
export const presentButton = (app) =>
  app.data.present
    ? [
        el(
          "button",
          {
            class: "present",
            title: `the picture fills the window (${KEY.toUpperCase()}), for a lecture`,
            onclick: () => enter(),
          },
          "Present",
        ),
        el(
          "button",
          { class: "film", title: "a loop, or what moves, for slides", onclick: () => film(app) },
          "Film",
        ),
      ]
    : [];
