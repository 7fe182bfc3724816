// Sliders generated from Python's parameter table, and other controls of a panel.
import type { Parameter, Setting, Slider, Choice, ValueOf } from "./types.ts";
import { el, symbol, tidy } from "./dom.ts";

// Return the control of one hyper-parameter: slider and number box, or a menu. onInput is called
// during a change, onRest at its end.
export function control<P extends Parameter>(
  schema: P,
  value: Setting | undefined,
  { onInput, onRest }: { onInput(value: ValueOf<P>): void; onRest(): void },
) {
  return schema.options
    ? choose(schema as Choice, value as string, {
        onInput: onInput as (value: string) => void,
        onRest,
      })
    : slide(schema as Slider, value as number | null | undefined, {
        onInput: onInput as (value: number | null) => void,
        onRest,
      });
}

// Return the legend entry of a mark in a figure; `kind` is the class of the mark.
export const keyMark = (kind: string, text: string) =>
  el("span", { class: "key" }, el("i", { class: kind }), text);

const symbolOf = (schema: Parameter) =>
  el("span", { class: "symbol", title: schema.help }, ...symbol(schema.symbol));

function choose(
  schema: Choice,
  value: string,
  { onInput, onRest }: { onInput(value: string): void; onRest(): void },
) {
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

function slide(
  schema: Slider,
  value: number | null | undefined,
  { onInput, onRest }: { onInput(value: number | null): void; onRest(): void },
) {
  const { log } = schema,
    low = Math.min(schema.low, value ?? schema.low),
    high = Math.max(schema.high, value ?? schema.high);
  const fromBar = (t: number) => (log ? low * (high / low) ** (t / 1000) : t);
  const toBar = (x: number) => (log ? (1000 * Math.log(x / low)) / Math.log(high / low) : x);
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
  const tell = (x: number) => bar.setAttribute("aria-valuetext", tidy(x));
  const place = (x: number) => {
    bar.value = String(toBar(x));
    tell(x);
  };
  const show = (x: number | null | undefined) => {
    bar.disabled = box.disabled = x === null;
    place(x ?? last);
    box.value = x === null ? "" : tidy(x);
    box.placeholder = x === null ? "∞" : "";
  };
  let current = value; // value in use, which may differ from the text of the box
  const use = (x: number | null) => {
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
  const parts: HTMLElement[] = [symbolOf(schema), bar, box];
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
