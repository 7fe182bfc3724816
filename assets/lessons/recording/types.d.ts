// What pages/lessons/figure/recording.py tells.
import type { Data } from "../../shared/types.js";

export interface Curves {
  title: string;
  unit: string; // after a value
  noisy: boolean; // drawn as a mean of the last frames
  values: number[][]; // a row a frame, a number a name
}
export interface RecordingData extends Data {
  kind: "projections" | "ensemble";
  at: number; // the frame that is shown
  steps: number[]; // of the training, one a frame
  words: string[]; // what is said of each frame
  places: number[][]; // of projections: x, y of all samples, then of all proxies, in thousandths
  labels: number[]; // of the samples
  proxies: number; // of each class
  names: string[]; // of an ensemble
  curves: Curves[];
}
