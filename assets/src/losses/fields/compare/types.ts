// Losses side by side: messages from pages/losses/fields/compare/page.py and service.py.
import type { Data, Hyper, Place, Point } from "../../../kit/types.ts";

export interface Panel {
  loss: string;
  hyper: Hyper;
}
export interface Comparison extends Record<Point, Place> {
  panels: Panel[];
  pair: number[]; // the two losses whose difference is drawn
  probe: Point;
  view: Place;
  shade: "energy" | "force";
  clamp: boolean;
  orders: boolean;
  fit: boolean;
  region: boolean;
  arrows: boolean;
  space: "plane" | "sphere";
  landscape: boolean; // show the energies of the pair as 3-D surfaces
  mass: number; // mass of the marbles
}
export interface Preset {
  title: string;
  kind: string;
  caption: string;
  comparison: Comparison;
}
export interface CompareData extends Data {
  comparison: Comparison;
  query: string;
  presets: Preset[];
  hide: string[];
  idle: boolean;
  landscape?: string; // address of the landscape module
}

// Scales that are fixed during a gesture; "fields" false: request only the numbers at a place.
export interface Held {
  scale?: number;
  reference?: number;
  span?: number;
}
export interface CompareRequest extends Held {
  comparison: Comparison;
  n?: number;
  settle?: boolean;
  lock?: boolean;
  at?: Place;
  fields?: false;
}
export interface Same {
  same: boolean;
  sentence: string;
  factor: number | null;
  usable: boolean;
}
export interface PanelNumbers {
  energy: number | null;
  raw: number | null;
  hit: boolean;
  forces: Place[];
  m2: number | null;
  factor: number;
  shift: number;
  outer: number[];
  inner: number[];
}
export interface There {
  energy: number | null;
  force: Place;
}
// Answer; shade0, active0, arrows0, corners0 and so on hold the field of each panel.
export type CompareAnswer = {
  id: number;
  n: number;
  view: Place;
  scale: number;
  reference: number;
  span: number;
  signed: boolean;
  largest: number | null;
  panels: PanelNumbers[];
  same: Same;
  difference: Uint8Array;
  apart: Int8Array;
  query?: string;
  snippet?: string;
  at?: Place;
  there?: There[];
  left?: { energy: number | null; force: number | null };
} & { [name: `shade${number}` | `active${number}`]: Uint8Array } & {
  [name: `corners${number}`]: Uint16Array;
} & { [name: `arrows${number}`]: Int8Array };
