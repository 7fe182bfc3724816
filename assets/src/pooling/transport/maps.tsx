// Maps of 10 x 10 cells: the one that is painted, weights of the poolings, and the plan.
import type { Transport } from "./transport.ts";
import { useRef } from "preact/hooks";
import { INK, rampColour } from "../../kit/colours.ts";
import { paintScale } from "../../kit/component.ts";
import { arrow, follow } from "../../kit/hand.ts";
import { Painting } from "../../kit/panel/painting.tsx";
import { SIDE, cells, colourOf, shade } from "./draw.ts";
import { POOLINGS, plain } from "./words.ts";

const CELLS = SIDE * SIDE,
  MARKS = ["◇", "○", "□"],
  TITLES = ["Linear programme", "Smoothed (exact)", "Average"],
  READOUTS = ["share_lp", "share_smoothed", "share_average"];

// Return the column and the row under a pointer, limited to the map.
function cellAt({ clientX, clientY }: MouseEvent, map: Element) {
  const { left, top, width, height } = map.getBoundingClientRect(),
    clip = (v: number) => Math.min(Math.max(Math.floor(v * SIDE), 0), SIDE - 1);
  return [clip((clientX - left) / width), clip((clientY - top) / height)];
}

// Return the text of a moment at rest, which does not follow a gesture.
function useAtRest(text: string, atRest: boolean) {
  const kept = useRef(text);
  if (atRest) kept.current = text;
  return kept.current;
}

// The map that the brush paints.
export function PaintedMap({ app }: { app: Transport }) {
  const { answer, mark, theme } = app.shown.value,
    last = useRef<number[] | null>(null),
    label = useAtRest(
      `map of 10 by 10 pixels, ${answer?.informative ?? "?"} informative; arrow keys move the cursor, space paints, shift and arrows paint along, 1 2 3 choose red, blue, background`,
      answer?.query !== undefined,
    );
  // Fill every cell from the last one, so that fast strokes leave no gaps.
  const stroke = (event: PointerEvent, map: Element) => {
    const to = cellAt(event, map),
      from = last.current ?? to,
      n = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]), 1),
      at = (axis: number, k: number) => Math.round(from[axis] + ((to[axis] - from[axis]) * k) / n);
    for (let k = 0; k <= n; k++) app.editor.paint(at(0, k), at(1, k));
    last.current = to;
    app.look(to[0] + SIDE * to[1]);
  };
  return (
    <Painting
      class="map"
      tabIndex={0}
      role="application"
      aria-label={label}
      paint={(ctx, size) => {
        const root = ctx.canvas.getRootNode() as Document | ShadowRoot,
          cursor = root.activeElement === ctx.canvas && ctx.canvas.matches(":focus-visible");
        const { pixels } = app.editor.state;
        cells(ctx, size, (j) => colourOf(pixels[j], theme), INK[theme], { mark, cursor });
      }}
      onPointerDown={(event) => {
        const map = event.currentTarget;
        if (event.button) return;
        event.preventDefault();
        map.focus({ preventScroll: true });
        app.editor.begin();
        last.current = null;
        stroke(event, map);
        const move = (e: PointerEvent) => {
          for (const each of e.getCoalescedEvents?.() ?? [e]) stroke(each, map);
        };
        follow(event, map, move, () => app.editor.end());
      }}
      {...looking(app)}
      onFocus={({ currentTarget }) => {
        if (currentTarget.matches(":focus-visible")) app.look(app.cursor, true);
      }}
      onBlur={() => app.look(null)}
      onKeyDown={(event) => pressed(event, app)}
    />
  );
}

function pressed(event: KeyboardEvent, app: Transport) {
  const { editor, cursor } = app,
    hues = ["red", "blue", "background"] as const,
    [right, up] = arrow(event)?.map(Math.sign) ?? [],
    clip = (v: number) => Math.min(Math.max(v, 0), SIDE - 1);
  const paint = (cell: number) => {
    editor.begin();
    editor.paint(cell % SIDE, Math.floor(cell / SIDE));
    editor.end();
  };
  if (right !== undefined) {
    app.cursor = clip((cursor % SIDE) + right) + SIDE * clip(Math.floor(cursor / SIDE) - up);
    if (event.shiftKey) paint(app.cursor);
    app.look(app.cursor, true);
  } else if (event.key === " " || event.key === "Enter") paint(cursor);
  else if (hues[Number(event.key) - 1]) app.setBrush({ hue: hues[Number(event.key) - 1] });
  else return;
  event.preventDefault();
}

// Listeners that show the numbers of the cell under the pointer.
const looking = (app: Transport) => ({
  onPointerMove(event: PointerEvent) {
    const [x, y] = cellAt(event, event.currentTarget as Element);
    app.look(x + SIDE * y);
  },
  onPointerLeave: () => app.look(null),
});

interface ValueMapProps {
  app: Transport;
  values: Float32Array;
  top: number; // value of the darkest colour
  label: string;
  pooling?: string;
}

function ValueMap({ app, values, top, label, pooling }: ValueMapProps) {
  const { answer, theme, mark } = app.shown.value;
  return (
    <Painting
      role="img"
      data-pooling={pooling}
      aria-label={useAtRest(label, answer?.query !== undefined)}
      paint={(ctx, size) => cells(ctx, size, shade(values, top, theme), INK[theme], { mark })}
      {...looking(app)}
    />
  );
}

// Weights of the three poolings, with their share on the informative pixels.
export function Cards({ app }: { app: Transport }) {
  const { answer: a } = app.shown.value;
  const labelOf = (i: number, values: Float32Array) => {
    if (!a) return "";
    const [red, background, blue] = a.mixtures[i].map((share) => share.toFixed(3));
    return `weights of the ${POOLINGS[i]}: from ${plain(Math.min(...values))} to ${plain(Math.max(...values))}, ${(100 * a.shares[i]).toFixed(1)} per cent on the informative pixels; pooled vector red ${red}, background ${background}, blue ${blue}`;
  };
  return (
    <div class="cards">
      {POOLINGS.map((name, i) => {
        const values = a?.weights.subarray(i * CELLS, (i + 1) * CELLS) ?? new Float32Array(CELLS);
        return (
          <figure key={name}>
            <h4>
              {MARKS[i]} {TITLES[i]}
            </h4>
            <ValueMap
              app={app}
              pooling={name}
              values={values}
              top={a?.most ?? 1}
              label={labelOf(i, values)}
            />
            <p class="share">
              <b data-readout={READOUTS[i]}>{a?.shares[i].toFixed(3)}</b>
              <span> of the weight on informative pixels</span>
            </p>
          </figure>
        );
      })}
    </div>
  );
}

// Scale of the weights.
export function WeightScale({ app }: { app: Transport }) {
  const { answer, theme } = app.shown.value;
  return (
    <div class="scale">
      <span>weight of a pixel: 0</span>
      <canvas
        width={120}
        height={1}
        key={theme}
        ref={(bar) => {
          if (bar) paintScale(bar, (t) => rampColour(t, theme));
        }}
      />
      <span>
        {answer &&
          `The maximum weight is 1/(nμ) = ${plain(answer.most)}. ${answer.informative} pixels are informative: less than half background.`}
      </span>
    </div>
  );
}

// Mass from each pixel to each prototype, and what is left out.
export function Plan({ app }: { app: Transport }) {
  const { answer: a } = app.shown.value,
    count = a?.state.prototypes.length ?? 0;
  return (
    <div class="plans">
      {a &&
        Array.from({ length: count + 1 }, (_, i) => {
          const last = i === count,
            z = last ? 1 - a.state.mu : a.marginals[i],
            label = last
              ? `mass left out, ${(100 * z).toFixed(0)} per cent of all`
              : `plan of prototype ${i + 1}: it takes ${(100 * z).toFixed(1)} per cent of the transported mass`;
          return (
            <div class="plan" key={last ? "left" : i}>
              <small>{last ? "left out, ρ" : `prototype ${i + 1}`}</small>
              <ValueMap
                app={app}
                values={last ? a.left : a.plan.subarray(i * CELLS, (i + 1) * CELLS)}
                top={1}
                label={label}
              />
              <div class="z">
                <span class="track">
                  <i style={`width: ${100 * Math.max(z, 0)}%`} />
                </span>
                <span>{last ? `1 − μ = ${z.toFixed(2)}` : `z = ${z.toFixed(3)}`}</span>
              </div>
            </div>
          );
        })}
    </div>
  );
}
