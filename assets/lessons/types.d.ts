// What pages/lessons/service.py tells.
import type { Data } from "../shared/types.js";

export interface Row {
  name: string;
  title: string;
  claim: string;
  minutes: number;
  steps: string[];
}
export interface Question {
  ask: string;
  kind: "do" | "choose" | "number";
  values: string[];
}
export interface Verdict {
  id: number;
  right: boolean;
  measured: string;
  words: string;
}
export interface LessonsData extends Data {
  lessons: Row[];
  lesson: string | null;
  step: number;
  question: Question | null;
  verdict: Verdict | null;
}
// The steps that were answered, by lesson, as the browser keeps them.
export type Progress = Record<string, number[]>;
