// Toy training: messages between the page and pages/losses/toy_training.
import type { Hyper, Loss, Shapes, Slider } from "../../kit/types.ts";
import type { History } from "./history.ts";
import type { Kinds, TimelineAnswer, TimelineData } from "../../kit/timeline/types.ts";

export interface Side {
  loss: string;
  hyper: Hyper;
  moves: string; // which forces act
  pooling: string;
  mu: number;
  epsilon: number;
}
export interface Settings {
  sides: Side[];
  rate: number;
}
export interface Change extends Settings {
  at: number; // step
}
export interface Toy extends Settings {
  data: string;
  split: string;
  optimiser: string;
  classes: number;
  samples: number;
  hidden: number;
  dim: number;
  seed: number;
  normalize: boolean;
  changes: Change[];
}
export interface Offer {
  title: string;
  help?: string;
}
export type Offers = Record<string, Offer>;
export interface Options {
  data: Offers;
  split: Offers;
  optimiser: Offers;
  moves: Offers;
  poolings: Offers;
  images: Record<string, string>; // network of each set of images
  gated: string[]; // poolings with a gate
  gate: (Slider & { name: "mu" | "epsilon" })[];
  sided: string[]; // losses with separate pulls and pushes
  second: Side;
  recent: number;
  not_stated: string;
  batch_losses: Record<string, Loss>;
  limits: Limits;
  presets: { title: string; caption: string; state: Toy }[];
}
export interface Limits {
  steps: number;
  changes: number;
  rate: [low: number, high: number];
  classes: [low: number, high: number];
  samples: [low: number, high: number];
  hidden: [low: number, high: number];
  seed: [low: number, high: number];
}
export interface ToysData extends TimelineData<Toy> {
  recorded: boolean; // there is a recording of this state
  options: Options;
}
export type ToysKinds = Kinds<Toy, ToysData, ToysAnswer, History, Settings>;
export interface Told {
  toml: string[];
  command: string[];
  links: string[];
}
export interface Scores {
  map_at_r: number;
  recall: number;
}
// Data that is sent once, to a page that has none.
export interface Known {
  labels: Uint8Array;
  indices: Int32Array;
  inputs: Float32Array; // (n, 3)
  baseline: Scores;
  classes: string[];
  axes: string[];
  note: string;
  samples: number;
  notes: string[];
  dim: number;
  queries: number[];
  sheet?: Uint8Array<ArrayBuffer>; // JPEG of all images
  columns: number;
  side: number;
}
export interface ToysAnswer extends TimelineAnswer, Partial<Known>, Partial<Told> {
  per_epoch: number;
  steps: Int32Array;
  shapes: Shapes;
  show?: number;
  // curve of side i
  [curve: `curve_${number}`]: Float32Array;
  [frames: `frames_${number}`]: Int16Array;
  [scale: `scale_${number}`]: Float32Array;
  [neighbours: `neighbours_${number}`]: Uint16Array | undefined;
  [weights: `weights_${number}`]: Uint8Array | undefined;
}
export interface Asked {
  count: number;
  positions: number;
  neighbours: Uint16Array;
  weights?: Uint8Array;
}
export interface SideHistory {
  frames: Map<number, Float32Array>;
  asked: Map<number, Asked>;
  rows: Float32Array[];
  scored: number[]; // step of the last measurement of MAP@R
}
export type Column =
  "loss" | "active" | "nonzero" | "map_at_r" | "recall" | "mean_loss" | "mean_active";

// Extent of a window.
export interface Extent {
  centre: number[];
  half: number;
}
export interface Scene {
  points: Float32Array;
  dim: number;
  labels: Uint8Array;
  eye: number[];
  outline: boolean;
  axes?: string[];
  highlighted: Set<number>;
  ring: number | null;
  window: Extent;
}
export interface ImageSheet {
  image: ImageBitmap;
  columns: number;
  side: number;
}
export interface Row {
  query: number;
  next: number[];
  weights?: Uint8Array;
}
// Scores over all samples, and the rows of Table 4.1.
export interface Published {
  label: string;
  loss: string;
  hyper: Hyper;
  ours: number[];
  scores: Record<string, number | null>;
}
export interface Table {
  columns: string[];
  ours: { label: string; scores: Record<string, number | null> | null }[];
  published: Published[];
  step: number;
  samples: number;
}
