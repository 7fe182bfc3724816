// Changes of a page to the plane of the Fields page. Everything has a default.
import type { Frame } from "../figure/spec.ts";
import type { Context, Hyper, Point } from "../types.ts";
import type { Field, FieldData, Scene } from "./types.ts";

export interface Variant {
  name?: string; // of files; default "field"
  route?: string; // of requests; default "api/field"
  styles?: string[]; // addresses of style sheets, before those of the plane
  kept?: string[]; // parameters of the address in addition to the scene
  bare?: boolean; // neither charts nor address nor buttons; the view stays as it is
  radius?(): number | null; // of the circle that points snap to; default 1
  defaults?(loss: string): Hyper | undefined; // parameters of a loss, if they are not the schema's
  home?(): Pick<Scene, Point | "view">; // points and view from which the page starts
  extra?(): object; // fields of each request in addition to the scene
  motions?: false; // the negative is not to circle

  arrange?(): void; // the elements of the page are there
  accept?(data: FieldData): FieldData; // data from Streamlit before they are used
  onData?(): void; // and after that
  isStale?(answer: Field): boolean; // an answer that is not to be shown
  onField?(answer: Field): void; // an answer was received
  onPaint?(ctx: Context, frame: Frame): void; // the figure was painted, perhaps for a file
  onLink?(query: string): void; // the address was written
}
