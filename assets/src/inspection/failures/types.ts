// Real triplet on the plane: messages from pages/inspection/failures/page.py and service.py.
import type { Field, FieldData } from "../../kit/plane/types.ts";
import type { Hyper, Place, Point } from "../../kit/types.ts";

export type Way = "length" | "rate"; // quantity that is equal for all losses

export interface FailureData extends FieldData {
  home: Record<Point, Place> & { view: Place; loss: string; hyper: Hyper };
  circle: number | null; // radius of the unit sphere in the plane
  of: Triple;
  images: string[];
  rate: number;
  by: Way;
  rates: [low: number, high: number];
  trained: boolean; // false for an embedding set, which has no network that could take a step
  last_word: string; // verdict of the true steps taken so far; "" before the first
}
export interface Triple {
  run: string;
  query: number;
  right: number;
  wrong: number;
}

// Ranks of the correct and the wrong neighbour, and the average precision of the query.
export interface Standing {
  right: number;
  wrong: number;
  ap: number;
}
export interface Step extends Standing {
  active: boolean;
  satisfied: boolean;
  force: number | null;
  moved: number | null;
}
// Losses that rank the query best, as text, and the best of each column.
export interface Best {
  names: string[];
  verdict: string;
  judged: string;
  leaders: Record<"right" | "wrong" | "ap", string[]>;
}
export type SortKey = "loss" | "force" | "right" | "wrong" | "ap";
export interface Sorting {
  key: SortKey;
  way: 1 | -1; // ascending or descending
}
export type Part = "size" | "in" | "off" | "radial" | "tangential";
export interface FailureNumbers {
  now: Standing;
  data: Standing; // ranks where the points are the embeddings
  moved: boolean;
  steps: Record<string, Step>; // by loss
  best: Best | null; // null while some losses have no result
  ends: Place[] | null; // end points of the step
  parts: Record<Part, (number | null)[]>;
  words: string[];
  searched: number;
}
export interface FailureAnswer extends Field {
  failure?: FailureNumbers;
  of: Triple;
  error?: string;
}
