// Simulation of charges: messages from pages/losses/charges/page.py and service.py.
import type { Hyper, Shapes } from "../../kit/types.ts";
import type { History } from "./history.ts";
import type { Kinds, TimelineAnswer, TimelineData } from "../../kit/timeline/types.ts";

export interface Law {
  loss: string;
  hyper: Hyper;
  miner: string;
  optimiser: string;
  normalise: string;
  side: string;
  step_size: number;
}
export type Moved = [index: number, x: number, y: number];
export interface Change {
  at: number; // step
  law: Law | null;
  moved: Moved[];
}
export interface Spec {
  start: string;
  classes: number;
  per_class: number;
  seed: number;
  law: Law;
  changes: Change[];
}
export interface Offer {
  title: string;
  help: string;
}
export interface Options {
  start: Record<string, Offer>;
  optimiser: Record<string, Offer>;
  miner: Record<string, Offer>;
  side: Record<string, Offer>;
  normalise: Record<string, Offer>;
  limits: {
    classes: number;
    per_class: number;
    points: number;
    changes: number;
    moved: number;
    steps: number;
    reach: number;
    stride: number;
    rate: [low: number, high: number];
  };
  presets: { title: string; caption: string; state: Spec }[];
}
export interface ChargesData extends TimelineData<Spec> {
  options: Options;
}

export type ChargesKinds = Kinds<Spec, ChargesData, ChargesAnswer, History, { law: Law }>;

export interface Portrait {
  density: Uint8Array; // (bins, bins), logarithmic
  corners: Float32Array; // corners of the clamp lines
  reach: number;
  outer: number[];
  inner: number[];
  violated: number;
  valid: number;
  third_edge: boolean;
  norms: boolean;
}
export interface ChargesAnswer extends Portrait, TimelineAnswer {
  shown: number; // step of the phase portrait
  most: number;
  columns: Column[];
  triplets: number[];
  capped: number[];
  labels: Uint8Array;
  positions: Float32Array; // (K, N, 2)
  forces: Float32Array;
  means: Float32Array; // (K, C, 2)
  radii: Float32Array; // (K, C)
  measures: Float32Array; // (K, columns)
  shapes: Shapes;
  python?: string;
}
export type Column = "loss" | "active" | "pull" | "push" | "map_at_r" | "covering" | "largest_step";
export interface Frame {
  positions: Float32Array;
  forces: Float32Array;
  means: Float32Array;
  radii: Float32Array;
  measures: Record<Column, number>;
  triplets: number;
  capped: number; // points whose move was limited
  portrait?: Portrait;
}
export interface Shown {
  trails: boolean;
  arrows: boolean;
  circles: boolean;
}
