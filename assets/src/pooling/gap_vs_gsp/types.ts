// GAP vs GSP: messages from pages/pooling/gap_vs_gsp/page.py and service.py.
import type { Shapes } from "../../kit/types.ts";
import type { History } from "./history.ts";
import type { Kinds, TimelineAnswer, TimelineData } from "../../kit/timeline/types.ts";

export type Side = "gap" | "gsp";
export type Settings = Record<string, number>; // settings that can change during training
export interface Change {
  at: number; // step
  settings?: Settings;
  [name: string]: unknown;
}
export interface Study extends Record<string, unknown> {
  classes: number;
  seed: number;
  tau: number;
  changes: Change[];
}

export interface Limit {
  low: number;
  high: number;
  step?: number;
  log?: boolean;
  default?: number;
}
// Bounds of each setting, and the maximal numbers of steps and changes.
export type Limits = Record<Setting, [low: number, high: number]> &
  Record<"steps" | "changes" | "unasked", number>;
export type Setting =
  "mu" | "epsilon" | "rate" | "margin" | "prototypes" | "warmup" | "seed" | "tau";
export interface Options {
  limits: Limits;
  onTheWay: string[];
  memory: number;
  bound: number;
  classes: string[];
  sentence: string;
  hint: string;
  presets: { title: string; caption: string; state: Study }[];
}
export interface GapData extends TimelineData<Study> {
  chosen: number | null;
  options: Options;
}
export type GapKinds = Kinds<Study, GapData, GapAnswer, History, Settings>;
export type Measure = "loss" | "map_at_r" | "on_shared" | "intersection" | "iou";
// Columns of each side, named gap_tokens, gsp_tokens, ...
export type Column =
  | "tokens"
  | "samples"
  | "weights"
  | "active"
  | "sizes"
  | "on_shared"
  | "measures"
  | "prototypes"
  | "corners"
  | "placed";
export type GapAnswer = TimelineAnswer & {
  count: number;
  measures: Measure[];
  scale: number;
  labels: Uint8Array;
  shapes: Shapes;
  runs?: Record<Side, string>; // as TOML
} & { [C in Column as `${Side}_${C}`]: Int16Array | Uint16Array | Uint8Array | Float32Array };

export type Measures = Record<Measure, number>;
export interface SideFrame {
  tokens: Float32Array;
  samples: Float32Array;
  prototypes: Float32Array;
  hulls: Float32Array[];
  classes: number;
  onShared: ArrayLike<number>;
  weight(label: number, token: number): number;
  active(label: number, token: number): boolean;
  measures: Measures;
  held: Measures; // last measurement
}
export type Frame = Record<Side, SideFrame>;
export interface Shown {
  hulls: boolean;
  samples: boolean;
  prototypes: boolean;
}
