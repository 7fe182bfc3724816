// Numbers of an answer in words: readouts, the table of forces, descriptions for screen readers.
import type { Scene, SphereAnswer } from "./types.ts";
import type { Rows } from "../../../kit/panel/panel.tsx";
import { POINTS } from "../../../kit/colours.ts";
import { show, stateOf, tidy } from "../../../kit/dom.ts";
import { bothAngles } from "./angle_map.ts";

const degrees = (x: number) => `${x.toFixed(1)}°`.replace("-", "−");

/** Return loss, angles and distances of the triplet. */
export const rowsOf = (f: SphereAnswer): Rows => [
  ["loss", show(f.energy)],
  ["before clamp", show(f.raw)],
  ["triplet", stateOf(f)],
  ["angle A–P", degrees(f.angles.ap)],
  ["angle A–N", degrees(f.angles.an)],
  ["angle P–N", degrees(f.angles.pn)],
  ["d(A,P)", show(f.edges.ap)],
  ["d(A,N)", show(f.edges.an)],
  ["d(P,N)", show(f.edges.pn)],
];

/** Return the parts of the force on point i: tangential, radial, radial share of its square. */
export function forceTexts(f: SphereAnswer | null, i: number): string[] {
  if (!f) return ["", "", ""];
  const tangential = Math.hypot(...f.tangential[i]),
    radial = f.radial[i],
    square = tangential ** 2 + radial ** 2;
  return [
    show(tangential),
    show(radial),
    square ? `${((100 * radial * radial) / square).toFixed(0)} %` : "–",
  ];
}

/** Return the coordinates of a point on its surface. */
export const coordinates = ({ on }: Scene, place: readonly number[]) =>
  place.slice(0, on === "sphere" ? 2 : 1);

/** Describe sphere or circle. */
export function describeFigure(scene: Scene, f: SphereAnswer | null): string {
  const shown =
    scene.on === "sphere"
      ? "Unit sphere; colour shows the loss at each position of the"
      : "Unit circle; the ring shows the loss at each position of the";
  if (!f) return `${shown} ${scene.probe}`;
  const where = POINTS.map(
    (name) => `${name} at ${coordinates(scene, scene[name]).map(degrees).join(", ")}`,
  );
  const forces = POINTS.map((name, i) => {
    const [tangential, radial] = forceTexts(f, i);
    return `${name} ${tangential} tangential, ${radial} radial`;
  });
  return `${shown} ${scene.probe}. ${where.join("; ")}. Loss ${show(f.energy)}, ${stateOf(f)}. Forces: ${forces.join("; ")}`;
}

/** Describe the map of both angles. */
export function describeMap(scene: Scene, f: SphereAnswer | null): string {
  const [p, n] = bothAngles(scene).map(degrees);
  return `Map of the loss over both angles. P is ${p} from A, N ${n}; loss ${show(f?.energy)}`;
}

/** Describe the handle of the map. */
export function describeAngles(scene: Scene): string {
  const [p, n] = bothAngles(scene).map(tidy);
  return `P ${p} and N ${n} degrees from A`;
}
