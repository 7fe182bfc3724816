// Counter-example: messages from pages/library/errata/page.py and service.py.
import type { Data, Hyper, Place, Point } from "../../kit/types.ts";

export interface Scene extends Record<Point, Place> {
  number: number;
  hyper: Hyper;
  probe: Point;
  view: Place;
}
export interface TruthData extends Data {
  scene: Scene;
  default: Scene;
  loss: string;
  sliders: string[];
  sides: [printed: string, truth: string];
  title: string;
}
export interface TruthRequest {
  scene: Scene;
  n: number; // nodes per side of the map
  scale?: number; // fixed during a gesture
}
export type Gradient = (number | null)[]; // null: not finite
export interface TruthAnswer {
  id: number;
  n: number;
  view: Place;
  scale: number;
  query: string;
  fields: string; // link to the Fields page
  printed: Gradient[];
  true: Gradient[];
  apart: (number | null)[];
  difference: number | null;
  energy: string;
  printed_energy: number | null;
  true_energy: number | null;
  shade: Uint8Array; // (n, n)
}
export type Side = "true" | "printed";
export type Pixels = [x: number, y: number];
export interface Label {
  side: Side;
  at: Pixels;
  words: string;
}
