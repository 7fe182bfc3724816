// Messages between pages with a player and pages/shared/timeline/service.py, and what a page gives
// its player.
import type { ComponentChildren } from "preact";
import type { Place } from "../session.ts";
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
export interface TimelineData<S extends State = State> extends Data {
  state: S;
  query: Query;
  step: number | null;
  idle: boolean; // the address requests nothing
  hide: string[];
  options: { limits: Limits; presets: { title: string; caption: string; state: S }[] };
}
// Steps 0..have are loaded, steps up to `want` are requested, `show` is displayed.
export interface TimelineRequest<S> {
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
// Types of a page with a player. S: state, which determines the steps; H: steps that are loaded; N:
// settings of the panel, the part of a state that a change holds
export interface Kinds<
  S extends State = State,
  D extends TimelineData<any> = TimelineData<any>,
  A extends TimelineAnswer = TimelineAnswer,
  H extends Steps<any> = Steps<any>,
  N extends object = object,
> {
  state: S;
  data: D;
  answer: A;
  steps: H;
  settings: N;
}

export type Speed = [text: string, stride: number, frames: number];
// Properties of a page. ahead: frames computed in advance; speeds: steps per displayed step (0 for
// an epoch) and frames per second at most.
export interface About<K extends Kinds> extends Place<K["data"]> {
  ahead: number;
  speeds?: Speed[];
  showWanted?: boolean; // a request names the step that it wants as the one shown
  empty(): K["steps"]; // no steps
}
// Figure of a page, and what it adds to its player.
export interface TimelineFigure<K extends Kinds> {
  settings?: readonly string[]; // names of the settings that can change during playback
  keys?: Record<string, (event: KeyboardEvent) => unknown>; // actions; false declines a key
  full?: string; // advice once the history is full
  readonly epoch?: number; // steps per epoch
  ready?: Promise<void>; // the first step is requested after it
  page(): ComponentChildren; // figure and panel
  resize(): void;
  paint(): void;
  close?(): void;
  settingsAt?(step: number): K["settings"]; // unless `settings` names them
  restarted?(change: Partial<K["state"]>): Partial<K["state"]>; // fields of the state that restarts
  onAnswer?(answer: K["answer"]): void; // it may carry more than steps
  onDraft?(answer: K["answer"]): void; // answer to a draft
  onLink?(answer: K["answer"]): void; // its additional fields
  onArrive?(step: number): void; // a step that playback or a request has waited for is shown
  onJump?(): void; // another step is shown
  onPanel?(): void; // the page was rendered with other settings
  onTheme?(): void;
  onStateReplaced?(): void; // another state replaces the settings of the panel
  marks?(): Query; // further parameters of the address
  describeStep?(): string; // the step shown, for screen readers
  defaultNotice?(): string; // while there is no message
  moment?(): string; // the step shown, next to the scrub bar
}
