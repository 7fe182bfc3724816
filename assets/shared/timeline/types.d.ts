// What pages that play tell pages/shared/timeline/service.py, and are told.
import type { Data } from "../types.js";

export type Query = Record<string, string>;
export interface Change {
  at: number; // the step
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
  idle: boolean; // the address asks for nothing
  hide: string[];
  options: { limits: Limits; presets: { title: string; caption: string; state: S }[] };
}
// Steps 0..have are here, those up to `want` are asked for; `show` is looked at.
export interface TimelineRequest<S> {
  id: number;
  state: S;
  have: number;
  want: number;
  show: number;
  stride: number;
  frames?: number[]; // of steps that are here without one
  rest?: boolean; // the link, too
  draft?: boolean; // the hand still moves
}
export interface TimelineAnswer {
  id: number;
  have: number;
  first: number; // step of the first frame
  ready: number; // the last step made
  stopped?: string | null; // why none is made after it
  preparing?: string;
  failed?: boolean;
  query?: Query;
}
// The steps that are here.
export interface Steps<A> {
  last: number;
  sparse?: boolean; // some are known without their frame, which can be asked for
  has(step: number): boolean;
  add(answer: A): void;
  forget(step: number): void; // this one and those after it are of a future that was changed
}
export type Speed = [text: string, stride: number, frames: number];
// What a page says of itself; speeds: steps from one shown to the next, 0 for an epoch, and frames
// a second at most; ahead: frames that are made before they are looked at.
export interface About {
  api: string;
  module: string;
  ahead: number;
  speeds?: Speed[];
  speed?: number;
}
