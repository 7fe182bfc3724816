// Sixteen colours, each as far as possible from all previous ones in OKLab, with normal and with
// deuteranopic vision, at a contrast of 3 or more; the first are Okabe-Ito's. Shapes distinguish
// classes that share a colour.
import type { Theme } from "../../kit/types.ts";
import { SHAPES } from "../../kit/plot.ts";

const COLOURS = {
  light: [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#d81fd0",
    "#1b2430",
    "#9e0000",
    "#5579ff",
    "#3a5200",
    "#613161",
    "#2d88ab",
    "#0c0086",
    "#8a6d00",
    "#ff3fa8",
    "#6d616d",
    "#550cb6",
    "#318624",
  ],
  dark: [
    "#3D9BD6",
    "#F07A2B",
    "#22C495",
    "#ee5fd8",
    "#e6eaf0",
    "#F3C200",
    "#7a86ff",
    "#aae7ff",
    "#c4123f",
    "#8fb04a",
    "#ffb0c8",
    "#8a7fa8",
    "#6de79e",
    "#b58cff",
    "#b0703c",
    "#5d8f8f",
  ],
};
export const colourOf = (k: number, theme: Theme) => COLOURS[theme][k % 16];
export const shapeOf = (k: number) => SHAPES[(k + (k >> 4) * 2) % 4];
