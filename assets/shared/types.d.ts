// What several components share: colours, scenes, and what travels between Python and JavaScript.
import type { Scene } from "./plane/types.js";

export type Theme = "light" | "dark";
export type Rgb = number[]; // red, green, blue in 0..255
export type Place = number[]; // coordinates; in the plane [x, y]
export type Point = "anchor" | "positive" | "negative";
export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
export type Ink = (typeof import("./colours.js"))["INK"][Theme];
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
// false, null and undefined leave an attribute out; true sets it empty.
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
// What the control of a parameter tells: null stands for infinite, where that is allowed.
export type ValueOf<P> = P extends { options: string[] }
  ? string
  : P extends { optional?: false }
    ? number
    : number | null;
export type Setting = number | string | null; // of a parameter; null: infinite
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
  plain: Omit<Scene, "loss" | "hyper">; // what figures and situations begin with
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
  look?: string; // the name of the control that the step speaks of
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

// What every mounted component hears; pages/shared/server/static_files.py adds base, files and
// entry.
export interface Data {
  base: string; // the path the app is served under
  files: string; // where the assets lie
  entry: string;
  socket?: boolean; // false: answers travel through Streamlit
  answer?: Carried | null;
  present?: Presentation | null;
}
// What a page shows a lecture (pages/shared/widgets/presentation.py).
export interface Presentation {
  title: string;
  caption: string; // {loss} stands for the loss that is shown
  controls: string[]; // what stands beside the picture at first, by the names of present/parts.js
  notes: string[];
  picture: "square" | "views" | "fill";
}
export interface Presentable {
  ready: Promise<unknown>;
  whole: HTMLElement;
  resize?(): void; // its canvases to the room they have
}
export interface Filmed extends Presentable {
  // of a film: loops of its own, and what tells that something is still on its way
  motions?: Motion[];
  paint?(): void;
  link?: { busy: boolean; waiting: object | null };
  frameRequest?: number | null;
  asked?: unknown; // a number: the frame that is to come
  wanted?: number;
  playing?: boolean;
}
// Returns to where it began: the pose of a share 0..1 of the way, and what is put back at its end.
export interface Motion {
  title: string;
  pose(share: number): unknown;
  end?(): unknown;
}
// The pictures of a film, as the encoder gave them, in the order of their times.
export interface Encoded {
  width: number;
  height: number;
  length: number; // ms
  pictures: { ms: number; key: boolean; data: Uint8Array }[];
  description?: Uint8Array; // of H.264: how to read them
  colours?: VideoColorSpaceInit;
}
// Of a page that asks: its link, where that holds its state, and what the link hides.
export interface AskingData extends Data {
  query?: string;
  hide?: string[];
}
// An answer that came with Streamlit's data: base64 of what a socket would have brought.
export interface Carried {
  id: number;
  bytes: string;
}
// What draws a component: made once per element.
export interface App<D extends Data> extends Presentable {
  setState: SetState;
  update(data: D): unknown;
  close(): void;
}
export type SetState = (name: string, value: unknown) => void;
export interface Mounted<D extends Data = Data> {
  data: D;
  parentElement: HTMLElement;
  setStateValue: SetState;
}
