// Circle and sphere: messages between the page and pages/losses/fields/sphere.
import type { Data, Hyper, Place, Point } from "../../../kit/types.ts";

export type On = "sphere" | "circle";
export interface Scene extends Record<Point, Place> {
  on: On;
  loss: string;
  hyper: Hyper;
  probe: Point;
  eye: Place; // longitude and latitude of the viewer; like those of the points, in degrees
  region: boolean;
  arrows: boolean;
  radial: boolean;
}
// Preset with a name: the three points on both surfaces.
export interface Known {
  title: string;
  caption: string;
  sphere?: Partial<Scene>;
  circle?: Partial<Scene>;
}
export interface SphereData extends Data {
  scene: Scene;
  states: Known[];
  hide: string[];
  idle: boolean;
}
export interface SphereRequest {
  scene: Scene;
  fine: boolean;
  map: boolean; // request the map of both angles, too
}
type Edge = "ap" | "an" | "pn";
export interface SphereAnswer {
  id: number;
  on: On;
  scale: number;
  link: string;
  raw: number | null;
  energy: number | null;
  m2: number | null;
  hit: boolean;
  points: Place[];
  tangential: Place[];
  radial: number[];
  angles: Record<Edge, number>;
  edges: Record<Edge, number>;
  active: Uint8Array; // one bit per node
  // rows of the sphere
  rows: number;
  columns: number;
  outer: number[];
  inner: number[];
  shade: Uint8Array;
  nodes: Int16Array;
  arrows: Int8Array;
  corners: Int16Array;
  // of the circle
  ring?: Uint8Array;
  whirl: Int8Array;
  map?: AngleMap; // if it was requested
  map_shade: Uint8Array;
  map_active: Uint8Array;
  map_lines: Uint16Array;
}
export interface AngleMap {
  n: number;
  outer: number[];
  inner: number[];
  bands: number[];
}

export type Vector = readonly number[]; // three numbers
export interface Look {
  right: Vector;
  up: Vector;
  eye: Vector;
}
export type At = (direction: Vector) => [x: number, y: number, depth: number];
export type Label = [text: string, x: number, y: number, colour: string];
