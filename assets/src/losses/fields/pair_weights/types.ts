// Pair weights page: messages from pages/losses/fields/pair_weights/page.py and service.py.
import type { Data, Hyper, Place } from "../../../kit/types.ts";

export type Pair = "ap" | "an" | "pn";
export interface Panel {
  loss: string;
  hyper: Hyper;
}
export interface View {
  panels: Panel[];
  weight: Pair;
  by: "S" | "d"; // slope with respect to similarity or distance
  scale: "signed" | "size";
  rival: "perpendicular" | "symmetric" | "fixed"; // position of N relative to P
  pn: number;
  at: Place; // similarities a-p and a-n of the triplet
}
export interface PairWeightsData extends Data {
  view: View;
  query: string;
  menus: Record<string, Record<string, string>>; // titles of the options
  slides: { title: string; caption: string; state: View }[];
  kept: string[]; // query parameters that are not part of the view
  hide: string[];
}
export interface PairWeightsRequest {
  view: View;
  n?: number; // nodes per side
  top?: number; // top of the scale, fixed during a gesture
  settle?: boolean;
  at?: Place;
  maps?: false; // request only the numbers at a place
}
export interface Lines {
  outer: number[]; // corners of each line
  inner: number[];
}
export interface Triplet {
  S: Record<Pair, number>;
  d: Record<Pair, number>;
  sphere: { positive: Place[]; negative: Place[]; arc: Place[] };
  losses: { loss: number; raw: number; active: boolean; weights: Record<Pair, number> }[];
}
// Numbers at a place; with the maps also weight0, corners0 and so on.
export type PairWeightsAnswer = {
  id: number;
  at: Place;
  triplet: Triplet | null;
  n: number;
  top: number;
  signed: boolean;
  panels: Lines[];
  exists: Uint8Array;
  query?: string;
} & { [name: `weight${number}`]: Uint8Array } & { [name: `corners${number}`]: Uint16Array };

export interface WeightMap {
  raster?: CanvasImageSource;
  lines?: Lines;
  corners?: Uint16Array;
  at: Place;
  hover?: Place | null;
}
