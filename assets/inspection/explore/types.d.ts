// The points of a map: pages/inspection/explore/canvas.py mounts them, service.py serves their
// files.
import type { Data, Shapes } from "../../shared/types.js";

export type Filtered = "right" | "rank" | "hubness" | "doubted" | "split";
export type Column = Filtered | "tags" | "purity" | "density";
export type Colouring = "class" | Column;

export interface MapData extends Data {
  points: string; // address of the folder of the map's files
  images: string; // address that a sample's index completes
  run: string;
  title: string;
  steps: number[]; // of the frames; none for a single one
  marks: number[]; // samples that a link names
  own: [x: number, y: number] | null; // where an image of the visitor belongs
  selection: { id: string } | null;
  seq: number; // of the last lasso that Python has heard
  look: Look;
  opened: number; // how often a view was opened: then the look is to be taken over
  menus: { colour: Record<Colouring, string>; sort: Record<Look["sort"], string> };
  links: { page: string; label: string; parameters: Record<string, string> }[];
  tags: string; // id of the run's tags; none: ""
  views: { name: string; query: string }[];
  closed: string; // why nothing can be kept with this run, or ""
}
// pages/inspection/explore/state.py; of each filter the values that stand out, none: all
export interface Look extends Record<Filtered, number[]> {
  colour: Colouring;
  classes: number[];
  tags: string[];
  sort: "class" | "rank" | "hubness" | "sample";
  size: number;
  names: boolean;
  images: boolean;
  contours: boolean;
  window: [x: number, y: number, zoom: number];
  sample: number;
}

// points.bin
export interface Points {
  xy: Uint16Array<ArrayBuffer>; // (n, 2), y upwards
  group: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>; // place of each point's class
  index_steps: Int32Array; // samples, and labels below, as differences
  label_steps: Int32Array;
  central: Int32Array; // row of the most central point of a class
  counts: Int32Array;
  colours: string[];
  names: string[];
  shapes: Shapes;
}
export interface Frame {
  xy: Uint16Array<ArrayBuffer>;
}
// right.bin, rank.bin, ...: a byte for each point, 255 where it means nothing; a column that filters
// has names, the others are scales
export interface Facts {
  values: Uint8Array<ArrayBuffer>;
  fine?: Uint16Array;
  names?: string[];
  title?: string;
  low?: string;
  high?: string;
  neither?: number;
}
export interface TagBits {
  names: string[];
  bits: Uint8Array;
}
export interface Contours {
  xy: Uint16Array;
  ends: Int32Array; // of each line, in points
  shares: number[];
}
export interface Near {
  neighbours: Neighbour[];
  precision: number | null;
  rank: number; // of the first of its class, 0: there is none
  forces: boolean;
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
// What the hand tells Python.
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
// What both painters draw.
export interface Marks {
  keys: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>; // place of each point's colour
  states: Uint8Array<ArrayBuffer>; // 1: stands out, 2: selected
  colours: Uint8Array<ArrayBuffer>; // 256 of RGBA
  shaped: number;
  middle: number[];
  scale: number[];
  window: Window;
  radius: number;
  faint: number;
  paper: number[];
  ink: number[];
}
