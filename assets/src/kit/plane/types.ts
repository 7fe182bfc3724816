// Messages between the Fields page and Python (pages/shared/plane/service.py,
// pages/shared/plane/state.py).
import type { Data, Hyper, Place, Point, Shapes } from "../types.ts";

// State of the plane: three points, a loss, a view and switches.
export interface Scene extends Record<Point, Place> {
  loss: string;
  hyper: Hyper;
  probe: Point; // the scanning point
  margin: "raw" | "normalised";
  mu: number | null;
  view: Place; // centre x, y and half the side
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
  landscape: boolean; // show the energy as a 3-D surface
  mass: number; // mass of the marble on it
}

export interface FieldData extends Data {
  scene: Scene;
  query: string;
  menus: Record<string, Record<string, string>>; // titles of the options
  hide: string[];
  idle: boolean; // the address names no scene: the negative may circle once
  grid: number | null;
  // reason for the first loss, and link to a study
  note?: { loss: string; text: string; query: string };
  landscape?: string; // address of the landscape module, if the page offers it
  carry?: string; // address of the link that carries the scene over
}

export interface FieldRequest {
  id: number;
  scene: Scene;
  n?: number; // nodes per side
  scale?: number | null; // scale of colours and arrows, fixed during a gesture
  reference?: number | null;
  settle?: boolean; // the gesture has ended
  batch?: Batch; // margins are displayed
  hover?: Place; // request the numbers at a place instead of a field
  of?: unknown; // on Failures: the triplet and the step
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

// Part of a field that is drawn; Compare and the export draw a subset.
export interface Painted {
  view: Place;
  forces: Place[]; // force on anchor, positive, negative
  residuals: Place[];
  strengths: Edges;
  shapes: Shapes;
  n: number;
  signed?: boolean;
  shade?: Uint8Array;
  active?: Uint8Array; // one bit per node, if the layer is a mask
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

// Answer of Python: numbers of the triplet and each layer that is shown.
export interface Field extends Painted {
  id: number;
  hover?: undefined;
  raw: number | null; // null: infinite
  energy: number | null;
  m1: number | null;
  m2: number | null;
  mu: number | null;
  hit: boolean;
  positive: boolean; // this loss has positive energy for every triplet
  edges: Edges;
  scale: number;
  reference: number;
  reach: number;
  quiet: boolean; // no place in view is active
  flat: boolean; // some places are active, but none has a force
  laws: Float32Array;
  cut?: Float32Array;
  // sent at the end of a gesture
  bring?: Place | null;
  query?: Record<string, string>;
  hyper: Hyper;
  region?: Region | null;
  has_margins?: boolean;
  margins?: Margin[];
}

// Numbers at one place.
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
export type At = (place: readonly number[]) => [number, number]; // maps the plane to pixels
export interface Extra {
  hover?: Hover | null;
  forceScale?: number;
  moving?: boolean;
  told?: Pick<Painted, "forces" | "strengths">; // numbers on arrows, equal to those in the table
  // area covered by buttons
  covered?: { left: number; top: number; right: number; bottom: number } | null;
}
