// Sixteen colours, each as far as possible from all previous ones in OKLab, with normal and with
// deuteranopic vision, at a contrast of 3 or more; the first are Okabe-Ito's. Shapes distinguish
// classes that share a colour.
import type { Theme } from "../../kit/types.ts";
import { LISTS } from "../../kit/colours.ts";
import { SHAPES } from "../../kit/plot.ts";

const COLOURS = LISTS.toys;
export const colourOf = (k: number, theme: Theme) => COLOURS[theme][k % 16];
export const shapeOf = (k: number) => SHAPES[(k + (k >> 4) * 2) % 4];
