// Numbers of the Prototypes page as text.
import type { Measure, One, Plane } from "./types.ts";
import { show as number } from "../../kit/dom.ts";

export const MEASURES: [name: Measure, title: string, help: string][] = [
  ["hull_iou", "hull IoU", "Intersection over union of the two hulls"],
  [
    "histogram_intersection",
    "histogram intersection",
    "Sum over prototypes of the smaller share; needs no threshold",
  ],
  [
    "active_jaccard",
    "active Jaccard",
    "Prototypes active in both classes over those active in either",
  ],
  ["hull_separation", "hull separation", "Distance between the hulls; 0 if they touch"],
  [
    "membership_rate",
    "inside the other",
    "Share of the averages of one class inside the hull of the other: first in second | second in first",
  ],
];

export const percent = (x: number) => `${(100 * x).toFixed(x > 0.995 && x < 1 ? 1 : 0)} %`;

// Return the errors of the average of an image.
export const errorsOf = ({ image }: One) =>
  `error ${number(image.error)}, mean distance ${number(image.mean_distance)}, delta ${number(image.radius)}`;

// Return the description of the plane for screen readers.
export function describePlane(plane: Plane, one: One) {
  const { image, view } = one,
    place = (xy: number[]) => xy.map(number).join(", ");
  return `${plane.total} images, ${plane.cells.length} prototypes. Image ${view.picture[1] + 1} of class ${image.name}: its average lies at ${place(image.pooled)}, its ${image.used} prototypes combine to ${place(image.combination)}; ${errorsOf(one)}. Left and right arrow: another image; up and down: another class.`;
}

// Return the description of the histogram of an image: its five largest shares.
export function describeBars({ histogram }: One) {
  const largest = [...histogram.keys()]
    .filter((i) => histogram[i] > 0)
    .sort((a, b) => histogram[b] - histogram[a])
    .slice(0, 5);
  return `histogram over ${histogram.length} prototypes; most in ${largest.map((i) => `${i + 1}: ${percent(histogram[i])}`).join(", ")}`;
}

// Return what the plane shows of the features.
export function describeFeatures({ note, kept, dimension, grid }: Plane) {
  const share =
    kept === null
      ? "The plane shows the features unchanged."
      : `The plane shows two of ${dimension} principal components, with ${percent(kept)} of the variance (PCA).`;
  return `${note} ${share} ${grid[0]} × ${grid[1]} features per image.`;
}
