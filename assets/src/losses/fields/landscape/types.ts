// Messages from pages/losses/fields/landscape/service.py.
import type { Data, Place, Theme } from "../../../kit/types.ts";

// Page with a landscape: it holds the state and is notified where the marble is placed.
export interface Host {
  root: ParentNode;
  data: Data & { landscape?: string }; // address of the landscape module
  theme: Theme;
  query: string;
  landscapeOf(): object; // request for Python: {scene} or {comparison}
  landscapeState(): { landscape: boolean; mass: number };
  letGo(place: Place): void;
  weigh(mass: number): void;
}
export interface Marble {
  trace: number; // index of the marble's trace in the figure
  x: number[]; // one number per frame
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
  plotly: string; // version of plotly.js
  figure: Figure;
  verdicts: string[];
  hidden: string;
}
