// Messages between pages with a player and pages/shared/timeline/service.py.
import type { Data } from "../types.ts";

export type Query = Record<string, string>;
export interface Change {
  at: number; // step
}
export interface State {
  seed: number;
  changes: Change[];
}
export interface Limits {
  steps: number;
  changes: number;
}
export interface TimelineData<S> extends Data {
  state: S;
  query: Query;
  step: number | null;
  idle: boolean; // the address requests nothing
  hide: string[];
  options: { limits: Limits; presets: { title: string; caption: string; state: S }[] };
}
// Steps 0..have are loaded, steps up to `want` are requested, `show` is displayed.
export interface TimelineRequest<S> {
  id: number;
  state: S;
  have: number;
  want: number;
  show: number;
  stride: number;
  frames?: number[]; // loaded steps without a frame
  rest?: boolean; // request the link, too
  draft?: boolean; // a slider is still moving
}
export interface TimelineAnswer {
  id: number;
  have: number;
  first: number; // step of the first frame
  ready: number; // the last step computed
  stopped?: string | null; // why no step is computed after it
  preparing?: string;
  failed?: boolean;
  query?: Query;
}
// Steps that are loaded.
export interface Steps<A> {
  last: number;
  sparse?: boolean; // some steps are known without their frame, which can be requested
  has(step: number): boolean;
  add(answer: A): void;
  forget(step: number): void; // drop this step and all later ones, because the future changed
}
export type Speed = [text: string, stride: number, frames: number];
// Properties of a page. speeds: steps per displayed step (0 for an epoch) and frames per second at
// most; ahead: frames computed in advance.
export interface About {
  api: string;
  styles: string;
  ahead: number;
  speeds?: Speed[];
  speed?: number;
}
