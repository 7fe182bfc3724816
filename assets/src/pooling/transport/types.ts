// Transport page: messages between the page and pages/pooling/transport.
import type { Data, Place, Shapes, Theme } from "../../kit/types.ts";

export interface State {
  pixels: number[]; // one code for each of the 10 x 10 cells
  prototypes: number[]; // codes of the prototypes
  mu: number;
  epsilon: number;
  sweeps: number;
}
export interface Brush {
  hue: "red" | "blue" | "background" | "free";
  code: number;
  purity: number; // share of the hue; the other two colours share the rest
  side: number; // in pixels of the map
}
export interface Options {
  maps: Record<string, { title: string; pixels: number[] }>;
  presets: { title: string; caption: string; state: State }[];
  limits: {
    mu: [low: number, high: number];
    epsilon: [low: number, high: number];
    sweeps: [low: number, high: number];
    prototypes: number;
  };
  table: number[]; // values of epsilon
  kept: string[]; // query parameters that are not part of the state
}
export interface TransportData extends Data {
  state: State;
  query: string;
  hide: string[];
  options: Options;
}
export interface TransportRequest {
  state: State;
  rest?: boolean; // request the link and slower results
}
export interface TransportAnswer {
  id: number;
  state: State;
  informative: number;
  shares: number[]; // of the linear program, the smoothed program, the average
  most: number;
  pooled: Place[];
  mixtures: number[][];
  bias: number | null; // null: infinite
  k: number;
  r: number;
  needed: number | null;
  most_sweeps: number;
  newton_steps: number;
  error: number;
  swept_sum: number;
  threshold: number;
  table: [epsilon: number, share: number][];
  cells: number[];
  notes: string[];
  verdict: string;
  next: string; // query for the next step
  query?: string;
  weights: Float32Array; // (3, 100)
  plan: Float32Array; // (prototypes, 100)
  left: Float32Array;
  marginals: Float32Array;
  soft_min: Float32Array;
  gates: Float32Array;
  distance: Float32Array;
  over: Float32Array; // (2, .): epsilon and share, like x and y below
  gate_curve: Float32Array;
  mean_curve: Float32Array;
  newton: Float32Array;
  swept: Float32Array;
  sweep_errors: Float32Array;
  newton_errors: Float32Array;
  corners: Float32Array;
  field: Uint8Array;
  shapes: Shapes;
}

export type To = (place: readonly number[]) => [number, number]; // maps the plane to pixels
// What a frame shows. The map and the prototypes are those of the editor.
export interface Shown {
  answer: TransportAnswer | undefined;
  mark: number | null; // cell under the pointer
  brush: Brush;
  canUndo: boolean;
  canRedo: boolean;
  theme: Theme;
}
