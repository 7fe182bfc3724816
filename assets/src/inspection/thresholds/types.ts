// Messages of pages/inspection/thresholds: data of the component, and the files of its service.
import type { Data, Numbers } from "../../kit/types.ts";

export type Side = "unseen" | "seen";
export type Rate = "fmr" | "fnmr";
export type Kind = "same" | "different";
export type Ends = [low: number, high: number];
export type Interval = Ends | null; // null: unknown, of fewer than three classes
export interface Look {
  t: number; // threshold; 2: the recommended one
  fmr: string;
  side: Side;
  order: "worst" | "near";
  curve: Rate;
}
export interface ThresholdData extends Data {
  address: string;
  images: string;
  parameters: Record<string, string>; // of links to other pages
  look: Look;
  menus: { side: Record<Side, string>; order: Record<string, string>; curve: Record<Rate, string> };
  baselines: { rows: Baseline[]; offer: string };
  set: boolean; // an embedding set
}
export interface Baseline {
  name: string;
  recommended: Recommended[];
}
export interface Recommended {
  promised: number;
  threshold: number;
  within: Interval;
  ratio: number;
  ratio_within: Interval;
  fmr: number; // on unseen classes, like the values below
  fmr_within: Interval;
  fnmr: number;
  fnmr_within: Interval;
  eer: number;
  eer_within: Interval;
}
export interface SideFacts {
  name: string;
  classes: number;
  samples: number;
  same: number; // pairs
  different: number;
  eer: number;
  eer_within: Interval;
  opis: number;
  class_names: string[]; // of the classes with curves
  class_labels: number[]; // the same classes; empty if Explore does not show them
}
// Accepted pairs SIDE_same and SIDE_different, intervals SIDE_within, class rates SIDE_fmr, SIDE_fnmr.
type CurveArrays = Record<`${Side}_${Kind | Rate | "within"}`, Numbers>;
export interface Curves extends CurveArrays {
  sides: Partial<Record<Side, SideFacts>> & { unseen: SideFacts };
  recommended: Recommended[];
  class_thresholds: number[];
  thresholds: Float32Array;
  even: Uint16Array; // indices of equal steps
  shapes: Record<string, number[]>;
}
type PairArrays = Record<
  `${Kind}_${"first" | "second" | "label" | "value" | "bin" | "opened"}`,
  Numbers
>;
export interface Pairs extends PairArrays {
  class_names: string[];
  keep: number;
}
// Pair with the data set indices of its samples; pages 1: Explore, 2: Failures.
export interface Pair {
  kind: Kind;
  samples: Ends;
  names: [string, string];
  value: number;
  pages: number;
}
