// Life cycle of every component: one app per element, style sheets and schema before the first
// drawing, the theme of the page, and answers that Streamlit carries if no socket opens.
import { asset } from "./address.ts";
import type { App, Carried, Data, Mounted, Schema, Theme } from "./types.ts";
import { applyTheme, drawing, styled } from "./dom.ts";
import { present, withdraw } from "./present/present.ts";
import { base64Buffer } from "./socket.ts";

const COMMON = ["theme/figure.css", "kit/katex.css"];
let schema: Promise<Schema> | undefined;
// Return Python's schema, fetched once.
export const schemaReady = () => (schema ??= fetch(asset("kit/schema.json")).then((r) => r.json()));

// Return the module's render and unmount functions. An app is created as new App(element, data) and
// receives all further data by hear(data).
export function defineComponent<D extends Data, A extends App<D>>(
  Component: new (element: HTMLElement, data: D) => A,
) {
  const apps: WeakMap<HTMLElement, A> = new WeakMap();
  return {
    render({ data, parentElement, setStateValue, setTriggerValue }: Mounted<D>) {
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
    unmount(parentElement: HTMLElement) {
      const app = apps.get(parentElement);
      if (!app) return;
      withdraw(app);
      app.close();
      apps.delete(parentElement);
    },
  };
}

// Return Python's schema once the shared style sheet and the component's own are loaded. `styles`
// is the path of the latter, e.g. "losses/charges/charges.css"; `more` come between the two.
export async function loadStyles(root: ParentNode, styles: string, ...more: string[]) {
  const sheets = [...COMMON.map(asset), ...more, asset(styles)];
  const [known] = await Promise.all([schemaReady(), styled(root, ...sheets)]);
  return known;
}

// Update app.theme ("light" or "dark") and return true if it changed.
export function newTheme(app: { root: ParentNode; whole: HTMLElement; theme?: Theme }) {
  const theme = applyTheme(app.root, app.whole),
    changed = theme !== app.theme;
  app.theme = theme;
  return changed;
}

// Handle an answer that arrived with Streamlit's data instead of through the socket.
export function receiveFallback(
  app: { answered: number; receive(answer: ArrayBuffer): void; link: { done(): void } },
  { answer }: { answer?: Carried | null },
) {
  if (!answer || answer.id <= app.answered) return;
  app.receive(base64Buffer(answer.bytes));
  app.link.done();
}

// Paint a colour scale: colour(t), t in 0..1, along a canvas one pixel high.
export function paintScale(canvas: HTMLCanvasElement, colour: (t: number) => number[]) {
  const ctx = drawing(canvas),
    last = canvas.width - 1;
  for (let i = 0; i <= last; i++) {
    ctx.fillStyle = `rgb(${colour(i / last)})`;
    ctx.fillRect(i, 0, 1, 1);
  }
}
