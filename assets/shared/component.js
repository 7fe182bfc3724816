// What every component goes through: one app per element, style sheets and schema before anything
// is shown, the theme of the page, and answers that travel through Streamlit where no socket opens.
/**
 * @import { App, Carried, Data, Mounted, Schema, Theme } from "./types.js"
 */
import { applyTheme, drawing, styled } from "./dom.js";
import { present, withdraw } from "./present.js";
import { base64Buffer } from "./socket.js";

const here = (/** @type {string} */ name) => new URL(name, import.meta.url).href;
const COMMON = ["shared.css", "katex.css", "figure.css"];
/** @type {Promise<Schema> | undefined} */
let schema;
const schemaReady = () => (schema ??= fetch(here("schema.json")).then((r) => r.json()));

// The module's render and unmount. An app is made as new App(element, data) and hears all further
// data by hear(data).
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
    render({ data, parentElement, setStateValue }) {
      let app = apps.get(parentElement);
      if (!app) {
        app = new Component(parentElement, data);
        apps.set(parentElement, app);
      }
      app.setState = setStateValue;
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

// Python's schema, once the common style sheet and the component's own are in place; `module` is
// the address of the component, beside which its style sheet lies.
/**
 * @param {ParentNode} root
 * @param {string} module
 * @param {...string} more style sheets between the two
 */
export async function loadStyles(root, module, ...more) {
  const sheets = [...COMMON.map(here), ...more, module.replace(/js$/, "css")];
  const [known] = await Promise.all([schemaReady(), styled(root, ...sheets)]);
  return known;
}

// Whether the page's theme is another than before; app.theme is "light" or "dark".
/** @param {{ root: ParentNode, whole: HTMLElement, theme?: Theme }} app */
export function newTheme(app) {
  const theme = applyTheme(app.root, app.whole),
    changed = theme !== app.theme;
  app.theme = theme;
  return changed;
}

// An answer that came with Streamlit's data instead of through the socket.
/**
 * @param {{ answered: number, receive(answer: ArrayBuffer): void, link: { done(): void } }} app
 * @param {{ answer?: Carried | null }} data
 */
export function receiveFallback(app, { answer }) {
  if (!answer || answer.id <= app.answered) return;
  app.receive(base64Buffer(answer.bytes));
  app.link.done();
}

// A colour scale: colour(t) with t in 0..1 along a canvas one pixel high.
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
