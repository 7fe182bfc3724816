// Life cycle of every component: one app per element, style sheets and schema before the first
// drawing, the theme of the page, and answers that Streamlit carries if no socket opens.
/**
 * @import { App, Carried, Data, Mounted, Schema, Theme } from "./types.js"
 */
import { applyTheme, drawing, styled } from "./dom.js";
import { present, withdraw } from "./present.js";
import { base64Buffer } from "./socket.js";

const localUrl = (/** @type {string} */ name) => new URL(name, import.meta.url).href;
const COMMON = ["shared.css", "katex.css", "figure.css"];
/** @type {Promise<Schema> | undefined} */
let schema;
const schemaReady = () => (schema ??= fetch(localUrl("schema.json")).then((r) => r.json()));

// Return the module's render and unmount functions. An app is created as new App(element, data) and
// receives all further data by hear(data).
/**
 * @template {Data} D
 * @template {App<D>} A
 * @param {new (element: HTMLElement, data: D) => A} Component
 */
export function defineComponent(Component) {
  /** @type {WeakMap<HTMLElement, A>} */
  const apps = new WeakMap();
  return {
    /** @param {Mounted<D>} component */
    render({ data, parentElement, setStateValue, setTriggerValue }) {
      let app = apps.get(parentElement);
      if (!app) {
        app = new Component(parentElement, data);
        apps.set(parentElement, app);
      }
      app.setState = setStateValue;
      app.trigger = setTriggerValue;
      app.update(data);
      present(app, data.present);
    },
    /** @param {HTMLElement} parentElement */
    unmount(parentElement) {
      const app = apps.get(parentElement);
      if (!app) return;
      withdraw(app);
      app.close();
      apps.delete(parentElement);
    },
  };
}

// Return Python's schema once the shared style sheet and the component's own are loaded. `module`
// is the address of the component; its style sheet is in the same folder.
/**
 * @param {ParentNode} root
 * @param {string} module
 * @param {...string} more style sheets between the two
 */
export async function loadStyles(root, module, ...more) {
  const sheets = [...COMMON.map(localUrl), ...more, module.replace(/js$/, "css")];
  const [known] = await Promise.all([schemaReady(), styled(root, ...sheets)]);
  return known;
}

// Update app.theme ("light" or "dark") and return true if it changed.
/** @param {{ root: ParentNode, whole: HTMLElement, theme?: Theme }} app */
export function newTheme(app) {
  const theme = applyTheme(app.root, app.whole),
    changed = theme !== app.theme;
  app.theme = theme;
  return changed;
}

// Handle an answer that arrived with Streamlit's data instead of through the socket.
/**
 * @param {{ answered: number, receive(answer: ArrayBuffer): void, link: { done(): void } }} app
 * @param {{ answer?: Carried | null }} data
 */
export function receiveFallback(app, { answer }) {
  if (!answer || answer.id <= app.answered) return;
  app.receive(base64Buffer(answer.bytes));
  app.link.done();
}

// Paint a colour scale: colour(t), t in 0..1, along a canvas one pixel high.
/**
 * @param {HTMLCanvasElement} canvas
 * @param {(t: number) => number[]} colour
 */
export function paintScale(canvas, colour) {
  const ctx = drawing(canvas),
    last = canvas.width - 1;
  for (let i = 0; i <= last; i++) {
    ctx.fillStyle = `rgb(${colour(i / last)})`;
    ctx.fillRect(i, 0, 1, 1);
  }
}
