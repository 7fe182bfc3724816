// The points of a map: pages/inspection/map/canvas/page.py mounts them, service.py serves their
// files.
import type { Data, Shapes } from "../../shared/types.js";

export type Colouring = "class" | "right" | "purity" | "density";

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
  links: { page: string; label: string; parameters: Record<string, string> }[];
}
export interface Look {
  colour: Colouring;
  classes: number[]; // labels that stand out; none: all
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
// right.bin, purity.bin, density.bin: a byte for each point, 255 where it means nothing
export interface Facts {
  values: Uint8Array<ArrayBuffer>;
  title: string;
  low: string;
  high: string;
  right: number;
  wrong: number;
  neither: number;
}
export interface Near {
  neighbours: Neighbour[];
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
  radius: number;
  faint: number;
  paper: number[];
  ink: number[];
}
