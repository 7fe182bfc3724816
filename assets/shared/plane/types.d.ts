// What the fields page and Python tell each other (pages/shared/plane/service.py,
// pages/shared/plane/state.py).
import type { Data, Hyper, Place, Point, Shapes } from "../types.js";

// What stands on the plane: three points, a loss, a view and switches.
export interface Scene extends Record<Point, Place> {
  loss: string;
  hyper: Hyper;
  probe: Point; // scans the plane
  margin: "raw" | "normalised";
  mu: number | null;
  view: Place; // middle x, y and half the side
  shade: "energy" | "raw" | "force" | "none";
  lines: "none" | "clamped" | "raw";
  flow: "arrows" | "streams" | "none";
  snap: "free" | "grid" | "circle" | "equilateral" | "isosceles";
  line: number[]; // x0, y0, x1, y1 of the cut
  region: boolean;
  forces: boolean;
  edges: boolean;
  discs: boolean;
  mining: boolean;
  cut: boolean;
  landscape: boolean; // the energy in space
  mass: number; // of the marble there
}

export interface FieldData extends Data {
  scene: Scene;
  query: string;
  menus: Record<string, Record<string, string>>; // what choices are called
  hide: string[];
  idle: boolean; // nobody asked for a scene: the negative may go round once
  grid: number | null;
  note?: { loss: string; text: string; query: string }; // why this loss is shown first, and the link of a study
  landscape?: string; // the module that draws landscapes, where the page offers them
  carry?: string; // the address whose link takes the scene along
}

export interface FieldRequest {
  id: number;
  scene: Scene;
  n?: number; // nodes along a side
  scale?: number | null; // of colour and of arrows: kept while the hand moves
  reference?: number | null;
  settle?: boolean; // the hand rests
  batch?: Batch; // margins are looked at
  hover?: Place; // the numbers at a place instead of a field
  of?: unknown; // of the page of failures: which triplet, and the step
  rate?: number;
  by?: string;
}
export interface Batch {
  B: number;
  C: number;
}

export interface Edges {
  ap: number;
  an: number;
  pn: number;
}
export interface Discs {
  radius: number;
  axes: number[];
}
export interface Mining {
  centre: Point | null;
  radius: number;
  labels: [string, Place][];
}
export interface Region {
  shape: string;
  area: number | null;
  latex: string | null;
  closed: boolean;
}
export interface Margin {
  label: string;
  set: Hyper;
  latex?: string[];
  note?: string;
  error?: string;
  batch?: boolean;
}

// What is drawn of a field; the comparison and the export draw some of it.
export interface Painted {
  view: Place;
  forces: Place[]; // on anchor, positive, negative
  residuals: Place[];
  strengths: Edges;
  shapes: Shapes;
  n: number;
  signed?: boolean;
  shade?: Uint8Array;
  active?: Uint8Array; // a bit for each node, where the layer is a mask
  rings: number[];
  patches?: Uint16Array;
  outer: number[];
  inner: number[];
  corners: Uint16Array;
  contours?: [level: number, counts: number[]][];
  contours_at: Uint16Array;
  arrows?: Int8Array | null;
  streams?: Uint16Array;
  mining?: Mining | null;
  discs?: Discs | null;
}

// The answer: numbers of the triplet, and each layer that is shown.
export interface Field extends Painted {
  id: number;
  hover?: undefined;
  raw: number | null; // null: infinite
  energy: number | null;
  m1: number | null;
  m2: number | null;
  mu: number | null;
  hit: boolean;
  positive: boolean; // the energy of this loss is above 0 for every triplet
  edges: Edges;
  scale: number;
  reference: number;
  reach: number;
  quiet: boolean; // no place in view is active
  flat: boolean; // some are, and none has a force
  laws: Float32Array;
  cut?: Float32Array;
  // once the hand rests
  bring?: Place | null;
  query?: Record<string, string>;
  hyper: Hyper;
  region?: Region | null;
  has_margins?: boolean;
  margins?: Margin[];
}

// The numbers at a place.
export interface Hover {
  at: Place;
  raw: number | null;
  energy: number | null;
  force: Place;
  hit: boolean;
  edges: Record<string, number>;
}
export interface HoverAnswer {
  id: number;
  hover: Hover;
}

export interface Box {
  left: number;
  top: number;
  side: number;
}
export interface Rasters {
  colour?: CanvasImageSource;
  veil?: CanvasImageSource;
}
export type At = (place: Place) => [number, number]; // from the plane to pixels
export interface Extra {
  hover?: Hover | null;
  forceScale?: number;
  moving?: boolean;
  told?: Pick<Painted, "forces" | "strengths">; // numbers on arrows: those of the table beside
  covered?: { left: number; top: number; right: number; bottom: number } | null; // by buttons
}
