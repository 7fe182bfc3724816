// Local features and prototypes: messages from pages/pooling/prototypes/page.py and service.py.
import type { Data, Shapes } from "../../kit/types.ts";

export interface View {
  source: string;
  prototypes: number;
  per_class: number;
  tau: number;
  weights: "uniform" | "pooling";
  shown: number[]; // classes with a hull
  picture: number[]; // class, and rank within the class
}
export interface PrototypesData extends Data {
  view: View;
  query: string;
  sources: Record<string, string>;
  limits: {
    prototypes: [low: number, high: number];
    per_class: [low: number, high: number];
    tau: [low: number, high: number];
    shown: number;
  };
  columns: number; // columns per sheet of images
  kept: string[]; // query parameters that are not part of the view
  hide: string[];
}
export interface PrototypesRequest {
  view: View;
  have: string | null; // key of the plane that is loaded
}
export type Measure =
  "hull_iou" | "histogram_intersection" | "active_jaccard" | "hull_separation" | "membership_rate";
export type Overlaps = Record<Measure, number>;
export interface ImageReading {
  index: number;
  row: number;
  name: string;
  pooled: [number, number];
  combination: [number, number];
  error: number;
  mean_distance: number;
  radius: number;
  holds: boolean;
  used: number;
}
// Answer about one image.
export interface One {
  id: number;
  error?: string;
  query: string;
  verdict: string;
  next: string; // query for the next step
  view: View;
  key: string;
  image: ImageReading;
  own: Float32Array; // (n, 2)
  weight: Float32Array;
  assigned: Uint8Array;
  histogram: Float32Array;
  pixels: Uint8Array; // (side, side, 3)
  shapes: Shapes;
}
// Answer with the plane as well, unless request.have names it.
export interface Plane extends One {
  classes: string[];
  counts: number[];
  most: number;
  note: string;
  dimension: number;
  kept: number | null; // share of the variance; null: already two-dimensional
  grid: [rows: number, columns: number];
  weighed: boolean;
  tau: number;
  holds: number;
  total: number;
  mean: { error: number; mean_distance: number; radius: number };
  overlaps: Overlaps;
  pairs: (Overlaps & { a: number; b: number; back: number })[];
  box: Box;
  cells: number[];
  hulls: number[];
  window: number;
  features: number[];
  sheet: string;
  prototypes: Float32Array;
  patches: Uint8Array;
  cell: Float32Array;
  hull: Float32Array;
  cloud: Uint16Array;
  pooled: Float32Array;
  place: Uint8Array;
  share: Float32Array;
  active: Uint8Array;
  shown: number[]; // as in the answer
}
export type Box = [left: number, bottom: number, side: number];
export interface Shows {
  features: boolean;
  patches: boolean;
  hulls: boolean;
  averages: boolean;
}
export interface Look {
  shown: number[];
  hover: number; // prototype, or -1
  pointed: number; // row, or -1
  show: Shows;
}
export type At = (x: number, y: number) => [number, number];
