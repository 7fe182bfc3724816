// Types shared by several components: colours, scenes, and messages between Python and JavaScript.
import type { Scene } from "./plane/types.ts";

export type Theme = "light" | "dark";
export type Rgb = number[]; // red, green, blue in 0..255
export type Place = number[]; // coordinates, [x, y] in the plane
export type Point = "anchor" | "positive" | "negative";
export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
export type Ink = (typeof import("./colours.ts"))["INK"][Theme];
export type Child = Node | string;

type Text = string | number | boolean | null | undefined;
type Named =
  | "alt"
  | "autocomplete"
  | "checked"
  | "class"
  | "colspan"
  | "disabled"
  | "draggable"
  | "download"
  | "for"
  | "height"
  | "hidden"
  | "href"
  | "label"
  | "id"
  | "inputmode"
  | "list"
  | "loading"
  | "max"
  | "maxlength"
  | "min"
  | "multiple"
  | "name"
  | "open"
  | "placeholder"
  | "rel"
  | "role"
  | "scope"
  | "selected"
  | "spellcheck"
  | "src"
  | "step"
  | "style"
  | "tabindex"
  | "target"
  | "title"
  | "type"
  | "value"
  | "width";
// False, null and undefined omit an attribute; true sets it to the empty string.
export type Attributes = {
  [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => unknown;
} & { [K in Named]?: Text } & { [name: `aria-${string}` | `data-${string}`]: Text };

// ---- the schema of pages/shared/server/schema.py
export interface Slider {
  name: string;
  symbol: string;
  help: string;
  default?: number | null;
  low: number;
  high: number;
  step?: number;
  log?: boolean;
  optional?: boolean;
  options?: undefined;
}
export interface Choice {
  name: string;
  symbol: string;
  help: string;
  default?: string;
  options: string[];
}
export type Parameter = Slider | Choice;
// Value reported by the control of a parameter; null is infinite, where allowed.
export type ValueOf<P> = P extends { options: string[] }
  ? string
  : P extends { optional?: false }
    ? number
    : number | null;
export type Setting = number | string | null; // value of a parameter; null: infinite
export type Hyper = Record<string, Setting>;
export interface Loss {
  title: string;
  sentence: string;
  source: string;
  latex: string;
  margin: string | null;
  controls: Parameter[];
}
export interface Schema {
  losses: Record<string, Loss>;
  presets: Preset[];
  plain: Omit<Scene, "loss" | "hyper">; // fields from which figures and presets start
  situations: Situation[];
  tour: Lesson[];
}
export interface Preset extends Partial<Scene> {
  figure: string;
  panel: string;
  caption: string;
  loss: string;
  hyper: Hyper;
}
export interface Situation {
  name: string;
  sentence: string;
  scene: Scene;
}
export interface Lesson {
  title: string;
  text: string;
  scene: Scene;
  look?: string; // name of the control that this step highlights
}

// ---- the wire of pages/shared/server/wire.py
export type Numbers =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>;
export type Shapes = Record<string, number[]>;

// Data that every mounted component receives; pages/shared/server/static_files.py adds base, files
// and entry.
export interface Data {
  base: string; // path under which the app is served
  files: string; // address of the assets
  entry: string;
  socket?: boolean; // false: answers are carried by Streamlit
  answer?: Carried | null;
  present?: Presentation | null;
}
// Content of a page in presentation mode (pages/shared/widgets/presentation.py).
export interface Presentation {
  title: string;
  caption: string; // {loss} is replaced by the loss shown
  controls: string[]; // parts shown next to the figure at first; names as in present/parts.js
  notes: string[];
  picture: "square" | "views" | "fill";
}
export interface Presentable {
  ready: Promise<unknown>;
  whole: HTMLElement;
  resize?(): void; // fits the canvases to the available space
}
export interface Filmed extends Presentable {
  // for recordings: loops of the page, and pending work to wait for
  motions?: Motion[];
  paint?(): void;
  link?: { busy: boolean; waiting: object | null };
  frameRequest?: number | null;
  asked?: unknown; // if a number: the frame that is expected
  clock?: { wanted?: number; frameRequest: number | null }; // of a figure that plays
}
// Motion that returns to its start: `pose` sets the position for a share in 0..1, `end` restores
// the state.
export interface Motion {
  title: string;
  pose(share: number): unknown;
  end?(): unknown;
}
// Data of a page that sends requests: its link, the data key of its state, and the parameters the
// link omits.
export interface AskingData extends Data {
  query?: string | Record<string, string>;
  hide?: string[];
}
// Answer delivered with Streamlit's data: base64 of the bytes that a socket would have carried.
export interface Carried {
  id: number;
  bytes: string;
}
// Object that draws a component, one per element.
export interface App<D extends Data> extends Presentable {
  setState: SetState;
  trigger?: SetState; // reports an event, which Python receives once
  update(data: D): unknown;
  close(): void;
}
export type SetState = (name: string, value: unknown) => void;
export interface Mounted<D extends Data = Data> {
  data: D;
  parentElement: HTMLElement;
  setStateValue: SetState;
  setTriggerValue: SetState;
}
