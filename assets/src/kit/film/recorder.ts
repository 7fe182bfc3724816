// Recording of a moving figure as a film for slides: the canvases of a page are drawn frame by
// frame. Motions return to their start, so that the film loops without a seam.
import type { Filmed, Motion } from "../types.ts";
import type { Carded } from "./card.ts";
import type { Kind } from "./formats.ts";
import { cardOf } from "./card.ts";
import { RATE, after } from "./formats.ts";
import { figureOf } from "./picture.ts";

const STEP = 1000 / RATE, // ms per frame
  PATIENCE = 600, // frames to wait at most
  WAITS = 2; // frames without pending work until a pose counts as drawn

export interface Recording {
  app: Carded;
  seconds: number;
  kind: Kind;
  card: boolean; // within a share card
  report: (share: number, text: string) => void; // share of the film that is recorded, in 0..1
  signal: AbortSignal;
}

// Record a loop, waiting for every frame. Return null if it is cancelled.
export async function recordLoop(recording: Recording, motion: Motion) {
  const { app, seconds, report, signal } = recording,
    count = Math.round(seconds * RATE),
    film = await openFilm(recording);
  try {
    for await (const i of frames(count, signal)) {
      await motion.pose(i / count);
      await waitUntilDrawn(app, signal);
      await film.add(i * STEP);
      report((i + 1) / count, `frame ${i + 1} of ${count}`);
    }
    return signal.aborted ? null : await film.end(count * STEP);
  } finally {
    await film.cancel();
    await motion.end?.();
  }
}

// Record a figure that moves by itself or is being used. Return null if it is cancelled.
export async function recordLive(recording: Recording) {
  const { seconds, report, signal } = recording,
    film = await openFilm(recording),
    began = performance.now(),
    passed = () => Math.round(performance.now() - began);
  try {
    for await (const ms of clock(1000 * seconds, passed, signal)) {
      await film.add(ms);
      report(ms / 1000 / seconds, `${(ms / 1000).toFixed(1)} s`);
      await after(Math.max(STEP - (passed() % STEP), 4));
    }
    return signal.aborted ? null : await film.end(1000 * seconds);
  } finally {
    await film.cancel();
  }
}

function* frames(count: number, signal: AbortSignal) {
  for (let i = 0; i < count && !signal.aborted; i++) yield i;
}

function* clock(length: number, passed: () => number, signal: AbortSignal) {
  for (let ms = 0; ms < length && !signal.aborted; ms = passed()) yield ms;
}

// Open a file; the first drawing determines its size.
async function openFilm({ app, kind, card }: Recording) {
  const { openWriter } = await import("./writers.ts"),
    { canvas, draw } = await (card ? cardOf(app) : figureOf(app));
  draw();
  const writer = await openWriter(canvas, kind);
  return {
    ...writer,
    add(ms: number) {
      draw();
      return writer.add(ms);
    },
  };
}

// Return true if no request of a pose is pending.
function isDrawn({ link, frameRequest, asked, clock: timeline }: Filmed) {
  const painting = frameRequest || timeline?.frameRequest || (typeof asked === "number" && asked);
  return !link?.busy && !link?.waiting && !painting && timeline?.wanted === undefined;
}

// Wait until nothing is pending; a figure that moves by itself never comes to rest.
async function waitUntilDrawn(app: Filmed, signal: AbortSignal, quiet = 0, waited = 0) {
  await new Promise(requestAnimationFrame);
  const now = isDrawn(app) ? quiet + 1 : 0;
  if (now < WAITS && waited < PATIENCE && !signal.aborted)
    await waitUntilDrawn(app, signal, now, waited + 1);
}
