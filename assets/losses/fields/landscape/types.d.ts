// What pages/losses/fields/landscape/service.py tells, and the little of plotly.js that draws it.
import type { Data, Place, Theme } from "../../../shared/types.js";

// The page on which a landscape stands: it holds the state and hears where the marble is let go.
export interface Host {
  root: ParentNode;
  data: Data & { landscape?: string }; // where the module lies among the assets
  theme: Theme;
  query: string;
  landscapeOf(): object; // what to ask Python of: {scene} or {comparison}
  landscapeState(): { landscape: boolean; mass: number };
  letGo(place: Place): void;
  weigh(mass: number): void;
}
export interface Marble {
  trace: number; // the marble's among the traces of the figure
  x: number[]; // a number a frame
  y: number[];
  z: number[];
}
export interface Figure {
  data: object[];
  layout: Record<string, object>;
  marbles: Marble[];
}
export interface LandscapeAnswer {
  id: number;
  plotly: string; // its version
  figure: Figure;
  verdicts: string[];
  hidden: string;
}
export interface Camera {
  eye: { x: number; y: number; z: number };
}
export interface Drawn extends HTMLElement {
  on(name: string, act: (event: any) => void): void;
  layout: Record<string, { camera?: Camera }>;
}
export interface Plotly {
  react(box: HTMLElement, data: object[], layout: object, config: object): Promise<Drawn>;
  restyle(box: HTMLElement, change: object, traces: number[]): Promise<unknown>;
  relayout(box: HTMLElement, change: object): Promise<unknown>;
  purge(box: HTMLElement): void;
  Plots: { resize(box: HTMLElement): void };
}
declare global {
  interface Window {
    Plotly?: Plotly;
  }
}
