// Messages from pages/lessons/figure/recording.py.
import type { Data } from "../../kit/types.ts";

export interface Curves {
  title: string;
  unit: string; // follows a value
  noisy: boolean; // drawn as a running mean over frames
  values: number[][]; // one row per frame, one number per name
}
export interface RecordingData extends Data {
  kind: "projections" | "ensemble";
  at: number; // frame shown
  steps: number[]; // training step of each frame
  words: string[]; // description of each frame
  places: number[][]; // projections: x, y of all samples, then of all proxies, in thousandths
  labels: number[]; // class of each sample
  proxies: number; // class of each proxy
  names: string[]; // curves of an ensemble
  curves: Curves[];
}
// Position between two frames; share is in 0..1.
export type Place = [from: number, to: number, share: number];
