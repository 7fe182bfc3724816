// Points of a map: pages/inspection/explore/canvas.py mounts the component, service.py serves the
// files.
import type { Data, Shapes } from "../../kit/types.ts";

export type Mask = Uint8Array<ArrayBuffer>; // a byte for each point
export type Filtered = "right" | "rank" | "hubness" | "doubted" | "split";
export type Metadata = `meta-${number}`; // a metadata column, by its number
export type Column = Filtered | "tags" | "purity" | "density" | Metadata;
export type Colouring = "class" | Column;

export interface MapData extends Data {
  points: string; // address of the folder with the map's files
  images: string; // address prefix that a sample's index completes
  run: string;
  title: string;
  steps: number[]; // step of each frame; empty for a single frame
  marks: number[]; // samples named by a link
  own: [x: number, y: number] | null; // position of the visitor's own image
  selection: { id: string } | null;
  seq: number; // number of the last lasso that Python has received
  look: Look;
  opened: number; // how many views were opened; a change means that `look` must be applied
  menus: { colour: Record<string, string>; sort: Record<string, string> };
  labelled: boolean; // false if the samples have no labels of classes
  trained: boolean; // false for an embedding set, which has no network
  links: { page: string; label: string; parameters: Record<string, string> }[];
  tags: string; // id of the run's tags; "" if there are none
  views: { name: string; query: string }[];
  closed: string; // why nothing can be stored with this run, or ""
}
// Display settings (pages/inspection/explore/state.py); each filter lists the highlighted values,
// empty: all.
export interface Look extends Record<Filtered, number[]> {
  colour: Colouring;
  classes: number[];
  meta: string[]; // "3-7": value 7 of metadata column 3; "3-20-90": its values 20 to 90
  tags: string[];
  sort: "class" | "rank" | "hubness" | "sample";
  size: number;
  names: boolean;
  images: boolean;
  contours: boolean;
  window: [x: number, y: number, zoom: number];
  sample: number;
}

// Contents of points.bin.
export interface Points {
  xy: Uint16Array<ArrayBuffer>; // (n, 2), y upwards
  group: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>; // position of each point's class
  index_steps: Int32Array; // differences between consecutive samples; label_steps alike
  label_steps: Int32Array;
  central: Int32Array; // row of the most central point of each class
  counts: Int32Array;
  colours: string[];
  names: string[];
  shapes: Shapes;
}
export interface Frame {
  xy: Uint16Array<ArrayBuffer>;
}
// Contents of right.bin, rank.bin, meta-0.bin, ...: one byte per point, 255 where undefined. Columns
// with names are filters, others are scales: with texts for both ends, or for a metadata column
// with their values.
export interface Facts {
  values: Uint8Array<ArrayBuffer>;
  fine?: Uint16Array;
  names?: string[];
  title?: string;
  low?: string;
  high?: string;
  neither?: number;
  colours?: string[]; // of the names; further names have the colour of missing values
  range?: [low: number, high: number];
  outside?: [below: boolean, above: boolean]; // true if there are values beyond an end
  dates?: boolean; // true if the range is in seconds since 1970
}
export interface TagBits {
  names: string[];
  bits: Uint8Array;
}
export interface Contours {
  xy: Uint16Array;
  ends: Int32Array; // end of each line, in points
  shares: number[];
}
export interface Near {
  neighbours: Neighbour[];
  precision: number | null;
  rank: number; // rank of the first sample of the same class, 0: there is none
  forces: boolean;
  id: string; // "" if the data set has no ids
  metadata: [name: string, value: string][];
}
export interface History {
  moments: { step: number; nearest: number; right: boolean; rank: number; distance: number }[];
  kept: number;
}
export interface Neighbour {
  row: number;
  right: boolean;
  distance: number;
}
export interface SelectionBits {
  bits: Uint8Array;
}
// Messages to Python about tags and views.
export type Keep =
  | { tag: string; on: boolean; bits: string }
  | { tag: string; on: boolean; index: number }
  | { view: string; look?: Look }
  | { drop: string }
  | { open: string };
export type Lasso = { polygon: string; frame: number; add: boolean } | { toggle: number };

export interface Class {
  name: string;
  label: number;
  row: number;
  count: number;
  colour: string;
}
export interface Window {
  left: number;
  right: number;
  bottom: number;
  top: number;
}
// Marks that both painters draw.
export interface Marks {
  keys: Mask | Uint16Array<ArrayBuffer>; // index of each point's colour
  states: Mask; // 1: highlighted, 2: selected
  table: Mask; // 256 RGBA colours
  shaped: number; // how shapes follow from keys: shapedBy in colours.ts
  middle: number[];
  scale: number[];
  window: Window;
  radius: number; // device pixels
  faint: number; // opacity of the points that are not highlighted
  paper: number[]; // red, green, blue in 0..1
  ink: number[];
}
