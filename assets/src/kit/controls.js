// Sliders generated from Python's parameter table, and other controls of a panel.
/**
 * @import { Hyper, Parameter, Schema, Setting, Slider, Choice, ValueOf } from "./types.js"
 */
import { el, symbol, tidy } from "./dom.js";

// Return the control of one hyper-parameter: slider and number box, or a menu. onInput is called
// during a change, onRest at its end.
/**
 * @template {Parameter} P
 * @param {P} schema
 * @param {Setting | undefined} value
 * @param {{ onInput(value: ValueOf<P>): void, onRest(): void }} heard
 */
export function control(schema, value, { onInput, onRest }) {
  return schema.options
    ? choose(/** @type {Choice} */ (schema), /** @type {string} */ (value), {
        onInput: /** @type {(value: string) => void} */ (onInput),
        onRest,
      })
    : slide(/** @type {Slider} */ (schema), /** @type {number | null | undefined} */ (value), {
        onInput: /** @type {(value: number | null) => void} */ (onInput),
        onRest,
      });
}

// Return the legend entry of a mark in a figure; `kind` is the class of the mark.
/**
 * @param {string} kind
 * @param {string} text
 */
export const keyMark = (kind, text) => el("span", { class: "key" }, el("i", { class: kind }), text);

const symbolOf = (/** @type {Parameter} */ schema) =>
  el("span", { class: "symbol", title: schema.help }, ...symbol(schema.symbol));

/**
 * @param {Choice} schema
 * @param {string} value
 * @param {{ onInput(value: string): void, onRest(): void }} heard
 */
function choose(schema, value, { onInput, onRest }) {
  const choice = el(
    "select",
    { "aria-label": schema.name, title: schema.help },
    ...schema.options.map((o) => el("option", { value: o, selected: o === value }, o)),
  );
  choice.addEventListener("change", () => {
    onInput(choice.value);
    onRest();
  });
  choice.style.gridColumn = "2 / 4";
  return el("div", { class: "control", "data-name": schema.name }, symbolOf(schema), choice);
}

/**
 * @param {Slider} schema
 * @param {number | null | undefined} value
 * @param {{ onInput(value: number | null): void, onRest(): void }} heard
 */
function slide(schema, value, { onInput, onRest }) {
  const { log } = schema,
    low = Math.min(schema.low, value ?? schema.low),
    high = Math.max(schema.high, value ?? schema.high);
  const fromBar = (/** @type {number} */ t) => (log ? low * (high / low) ** (t / 1000) : t);
  const toBar = (/** @type {number} */ x) =>
    log ? (1000 * Math.log(x / low)) / Math.log(high / low) : x;
  const bar = el("input", {
    type: "range",
    "aria-label": schema.name,
    title: schema.help,
    min: log ? 0 : low,
    max: log ? 1000 : high,
    step: log ? 1 : schema.step,
  });
  const box = el("input", {
    type: "number",
    step: "any",
    "aria-label": `${schema.name} value`,
    title: schema.help,
  });
  const last = value ?? schema.default ?? high;
  // logarithmic sliders count 0..1000
  const tell = (/** @type {number} */ x) => bar.setAttribute("aria-valuetext", tidy(x));
  const place = (/** @type {number} */ x) => {
    bar.value = String(toBar(x));
    tell(x);
  };
  const show = (/** @type {number | null | undefined} */ x) => {
    bar.disabled = box.disabled = x === null;
    place(x ?? last);
    box.value = x === null ? "" : tidy(x);
    box.placeholder = x === null ? "∞" : "";
  };
  let current = value; // value in use, which may differ from the text of the box
  const use = (/** @type {number | null} */ x) => {
    current = x;
    onInput(x);
  };
  show(value);
  bar.addEventListener("input", () => {
    const x = Number(tidy(fromBar(Number(bar.value))));
    box.value = tidy(x);
    tell(x);
    use(x);
  });
  bar.addEventListener("change", onRest);
  box.addEventListener("change", () => {
    const x = Number(box.value);
    if (box.value === "" || !Number.isFinite(x)) return show(current);
    place(x);
    use(x);
    onRest();
  });
  /** @type {HTMLElement[]} */
  const parts = [symbolOf(schema), bar, box];
  if (schema.optional) {
    const open = el("input", {
      type: "checkbox",
      "aria-label": `${schema.name} open`,
      checked: value === null,
    });
    open.addEventListener("change", () => {
      const x = open.checked ? null : fromBar(Number(bar.value));
      show(x);
      use(x);
      onRest();
    });
    parts.push(el("label", { class: "open" }, open, "no upper clamp"));
  }
  return el("div", { class: "control", "data-name": schema.name }, ...parts);
}

// Buttons that load presets, and the description of the one last pressed.
/** @template {{ title: string, caption: string, state?: unknown }} O */
export class Presets {
  /**
   * @param {O[]} offers
   * @param {(index: number) => void} act
   * @param {string} [otherwise] text while none is pressed
   */
  constructor(offers, act, otherwise = "") {
    this.offers = offers;
    this.otherwise = otherwise;
    this.buttons = offers.map(({ title }, i) =>
      el("button", { "data-preset": i, "aria-pressed": "false", onclick: () => act(i) }, title),
    );
    this.row = el("div", { class: "try" }, el("small", {}, "Try"), ...this.buttons);
    this.text = el("p", { class: "caption", "aria-live": "polite" }, otherwise);
  }

  // Mark the preset that equals the state with which a page opens.
  /** @param {unknown} state */
  find(state) {
    const text = JSON.stringify(state),
      found = this.offers.findIndex((offer) => JSON.stringify(offer.state) === text);
    if (found >= 0) this.press(found);
  }

  /** @param {number | null} [chosen] none by default */
  press(chosen) {
    this.buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(i === chosen)));
    this.text.textContent = this.offers[chosen ?? -1]?.caption ?? this.otherwise;
  }
}

// Return radio buttons, each with a title and optionally a help text.
/**
 * @param {string} label
 * @param {Record<string, string | { title: string, help?: string }>} offers
 * @param {unknown} chosen
 * @param {(value: string) => void} act
 */
export function menu(label, offers, chosen, act) {
  const options = Object.entries(offers).map(([value, offer]) => {
    const { title, help } = typeof offer === "string" ? { title: offer } : offer;
    return el("option", { value, selected: value === String(chosen), title: help }, title);
  });
  const box = el("select", { "aria-label": label }, ...options);
  box.addEventListener("change", () => act(box.value));
  return box;
}

// Return check boxes for parts of a figure.
/**
 * @template {string} K
 * @param {Record<K, boolean>} shown
 * @param {(readonly [key: K, text: string, title?: string])[]} rows
 * @param {(key: K, on: boolean) => void} act called after a change
 */
export function switches(shown, rows, act) {
  const labels = rows.map(([key, text, title]) => {
    const box = el("input", { type: "checkbox", checked: shown[key] });
    box.addEventListener("change", () => act(key, box.checked));
    return el("label", { title }, box, text);
  });
  return el("div", { class: "switches" }, ...labels);
}

// Return the loss menu over the catalogue with one control per hyper-parameter. state = {loss,
// hyper} is modified in place; `called` distinguishes sliders of several panels; onInput is called
// while a slider moves, onRest at its end, onLoss after another loss was chosen (with its defaults
// set).
/**
 * @param {Pick<Schema, "losses">} schema
 * @param {{ loss: string, hyper: Hyper }} state
 * @param {{
 * hidden?: Set<string>,
 * onInput(name: string): void,
 * onRest(name: string): void,
 * onLoss(): void,
 * label?: string,
 * called?: (name: string) => string,
 * }} settings
 */
export function lossPanel(
  schema,
  state,
  { hidden = new Set(), onInput, onRest, onLoss, label = "loss", called = (name) => name },
) {
  const { losses } = schema;
  const choice = menu(label, losses, state.loss, (loss) => {
    state.loss = loss;
    state.hyper = Object.fromEntries(losses[loss].controls.map((c) => [c.name, c.default ?? null]));
    onLoss();
  });
  const sliders = losses[state.loss].controls
    .filter((c) => !hidden.has(c.name))
    .map((c) =>
      control(
        { ...c, name: called(c.name) },
        state.hyper[c.name] ?? (c.name in state.hyper ? null : c.default),
        {
          onInput: (x) => {
            state.hyper[c.name] = x;
            onInput(c.name);
          },
          onRest: () => onRest(c.name),
        },
      ),
    );
  return [
    el("section", {}, el("h4", {}, "Loss"), choice),
    el(
      "section",
      {},
      ...(losses[state.loss].controls.length
        ? sliders
        : [el("p", { class: "caption" }, "This loss has no parameters.")]),
    ),
  ];
}
