// Presentation mode: a page's figure fills the window, opened by a key, a button among the exports,
// or the address. Its modules are loaded on first use.
import type { Stage } from "./stage.tsx";
import type { Carded } from "../film/card.ts";
import type { Presentable, Presentation } from "../types.ts";
import { save } from "../dom.ts";

export const KEY = "t"; // t for theatre
let offered: { app: Presentable; about: Presentation } | null = null;
let stage: Stage | null = null;
let coming = false,
  listening = false;

// Register the component that can be presented; called whenever it receives data.
export async function present(app: Presentable, about?: Presentation | null) {
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
export function withdraw(app: Presentable) {
  if (offered?.app !== app) return;
  stage?.down();
  offered = null;
}

// Show the figure of the registered component in the whole window.
export async function enter() {
  if (!offered || stage || coming) return;
  coming = true;
  const { app } = offered;
  await app.ready;
  const module = await import("./stage.tsx");
  coming = false;
  if (offered?.app !== app) {
    await enter(); // component that was registered meanwhile
    return;
  }
  const next: Stage = new module.Stage(app, offered.about, () => (stage = null));
  stage = next;
  await next.enter();
}

function pressed(event: KeyboardEvent) {
  const { ctrlKey, metaKey, altKey, shiftKey, key } = event;
  if (ctrlKey || metaKey || altKey || shiftKey || !offered || typed(event)) return;
  if (key === KEY) {
    if (stage) stage.leave();
    else enter();
    event.preventDefault();
  } else stage?.key(event);
}

// Return true if a key press is meant for a text field or menu.
function typed(event: KeyboardEvent) {
  const [target] = event.composedPath();
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=range], [type=checkbox], [type=radio])")) &&
    event.key !== "Escape"
  );
}

// Save the share card of a page; `image` returns what it shows in place of the figure.
export async function shareCard(app: Carded, image?: () => Promise<Blob>) {
  const { cardImage } = await import("../film/card.ts");
  save(`${location.pathname.split("/").pop()}-card.png`, await cardImage(app, image));
}

// Open the recorder of films.
export async function film(app: Carded) {
  const { openFilmDialog } = await import("../film/film.tsx");
  openFilmDialog(app);
}
