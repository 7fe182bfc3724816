// Answers of Python: a figure of the scene, or the numbers at one place.
import type { Fields } from "./plane.ts";
import type { Field, Hover } from "./types.ts";
import { LETTER } from "../colours.ts";
import { show, stateOf, writeAddress } from "../dom.ts";
import { rasterise } from "./paint.ts";
import { adopt } from "./parameters.ts";

const ARROW = 130; // length of the longest arrow of the forces along edges, px

/** Show a figure: take over what Python has computed for the scene, numbers and the link. */
export function receiveField(app: Fields, answer: Field): void {
  const { scene, requests, panel } = app;
  app.field = answer;
  app.rasters = rasterise(answer, app.theme, answer.signed);
  app.forceScale = forceScale(answer, app.forceScale);
  if (scene.margin === "normalised") {
    scene.hyper.m1 = answer.m1;
    if (scene.mu === null && answer.id === requests.sent) {
      scene.mu = answer.mu;
      panel.build();
      panel.show();
    }
  } else if (answer.mu !== null) scene.mu = answer.mu;
  app.readout.update(answer.query !== undefined);
  if (answer.query) {
    writeLink(app, answer.query);
    const changes = app.figure.busy || requests.link.waiting;
    if (!changes && adopt(scene, answer.hyper)) {
      panel.build();
      app.sync();
    }
  }
  app.variant.onField?.(answer);
  app.figure.invalidate();
}

// Return px per unit of force. It stays as long as the longest arrow is neither short nor long.
function forceScale({ forces, residuals, strengths }: Field, before: number): number {
  const largest = Math.max(
      ...forces.concat(residuals).map((force) => Math.hypot(...force)),
      ...Object.values(strengths).map(Math.abs),
      1e-9,
    ),
    share = (before * largest) / ARROW;
  return share > 0.4 && share < 1.5 ? before : ARROW / largest;
}

function writeLink(app: Fields, query: Record<string, string>): void {
  const { bare, kept = ["hide", "socket", "grid"], onLink } = app.variant;
  if (bare) return;
  app.query = new URLSearchParams(query).toString();
  writeAddress(app.query, kept);
  onLink?.call(app.variant, app.query);
}

/** Show the numbers at a place, unless the pointer has left it. */
export function receiveHover(app: Fields, hover: Hover): void {
  const { figure, scene } = app;
  if (figure.busy || !figure.cursor) return;
  app.hovered = hover;
  figure.showTip(hover.at, [
    [`${LETTER[scene.probe]} here`, hover.at.map((v) => v.toFixed(3)).join(", ")],
    ["loss", show(hover.energy)],
    ["before clamp", show(hover.raw)],
    ["force", Math.hypot(...hover.force).toPrecision(4)],
    ...Object.entries(hover.edges).map(([pair, length]): [string, string] => [
      `d(${pair.toUpperCase().split("").join(",")})`,
      length.toFixed(3),
    ]),
    ["", `${stateOf(hover)}${hover.hit ? "" : ": no force"}`],
  ]);
  figure.invalidate();
}
