// Messages from pages/lessons/service.py.
import type { Data } from "../kit/types.ts";

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
// Answered steps by lesson, as the browser stores them.
export type Progress = Record<string, number[]>;
