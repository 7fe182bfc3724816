// Colour scale of all planes and that of the difference.
import type { Compare } from "./compare.tsx";
import type { CompareAnswer, Comparison, PanelNumbers } from "./types.ts";
import { Ramp } from "../../../kit/figure/legend.tsx";
import { SCALES } from "../../../kit/figure/raster.ts";
import { Key, Text } from "../../../kit/panel/panel.tsx";
import { number } from "./numbers.ts";

export const SHADES: Record<string, string> = {
  "energy,1": "loss, clamped",
  "energy,0": "loss before the clamp",
  "force,1": "force, clamped",
  "force,0": "force before the clamp",
};

/** Key of SHADES for what is coloured. */
export const shadeOf = ({ shade, clamp }: Comparison) => `${shade},${Number(clamp)}`;

/** Text of the scales for an answer; it stays the same while they do. */
export const scalesOf = (
  { scale, span, signed, panels }: CompareAnswer,
  { pair: [, second] }: Comparison,
) =>
  JSON.stringify({
    scale,
    span,
    signed,
    factor: panels[second].factor,
    shift: panels[second].shift,
    clamps: panels.some((p) => p.m2 !== null),
  });

type Shown = Pick<CompareAnswer, "scale" | "span" | "signed"> &
  Pick<PanelNumbers, "factor" | "shift"> & { clamps: boolean };
const shownBy = (app: Compare): Shown | null => JSON.parse(app.scaleText.value);

/** Scale of all planes with its buttons and the keys of their lines. */
export const PlaneScale = ({ app }: { app: Compare }) => (
  <div class="bars">
    <AllPlanes app={app} state={{ ...app.state }} />
    <button title="Fit the colour scale to the values in view" onClick={() => app.rescale(true)}>
      rescale
    </button>
    <Lock app={app} />
    <Keys app={app} state={{ ...app.state }} />
  </div>
);

interface OfState {
  app: Compare;
  state: Comparison; // a copy, so that a changed comparison renders again
}

function AllPlanes({ app, state }: OfState) {
  const shown = shownBy(app);
  return (
    <span class="bars">
      {shown && (
        <Bar
          app={app}
          kind={shown.signed ? "signed" : "ramp"}
          name={`${SHADES[shadeOf(state)]}, one scale for all planes`}
          top={shown.scale}
        />
      )}
    </span>
  );
}

const Lock = ({ app: { locked } }: { app: Compare }) => (
  <button
    aria-pressed={locked.value}
    title="Keep the colour scale when the values change"
    onClick={() => (locked.value = !locked.value)}
  >
    lock scale
  </button>
);

function Keys({ app, state: { region, clamp } }: OfState) {
  const clamps = shownBy(app)?.clamps;
  return (
    <span class="bars">
      {region && <Key>loss = 0</Key>}
      {region && clamp && clamps && <Key kind="dashed">upper clamp</Key>}
      {region && clamp && <Key kind="hatched">no force</Key>}
    </span>
  );
}

/** Scale of the difference, and the largest one in view. */
export const DifferenceScale = ({ app }: { app: Compare }) => (
  <div class="bars">
    <Difference app={app} state={{ ...app.state }} />
    <span>
      largest in view <Text read={() => number(app.answer.value?.largest)} />
    </span>
  </div>
);

function Difference({ app, state: { shade } }: OfState) {
  const shown = shownBy(app);
  return (
    <span>
      {shown && (
        <Bar
          app={app}
          kind={shade === "energy" ? "signed" : "half"}
          name={shade === "energy" ? "loss" : "force"}
          top={shown.span}
        />
      )}
    </span>
  );
}

/** Legend of the colours of the difference. */
export function Meaning({ app, state }: OfState) {
  const shown = shownBy(app);
  return <p class="formula legend">{shown && meaning(state, shown)}</p>;
}

// Scale from 0 ("ramp"), about 0 ("signed"), or the upper "half" of signed.
function Bar({
  app,
  kind,
  name,
  top,
}: {
  app: Compare;
  kind: "ramp" | "signed" | "half";
  name: string;
  top: number;
}) {
  const most = String(Number(top.toPrecision(3))),
    theme = app.session.theme.value;
  return (
    <span class="bar">
      <span>{name}</span>
      <Ramp
        colour={SCALES[theme][kind]}
        low={kind === "signed" ? `≤ −${most}` : "0"}
        high={`≥ ${most}`}
        theme={theme}
      />
    </span>
  );
}

function meaning(state: Comparison, { factor, shift }: Shown) {
  const [i, j] = state.pair.map((k) => `loss ${k + 1}`),
    times = Math.abs(factor - 1) < 1e-9 ? j : `${number(factor)} × ${j}`;
  if (state.shade === "force")
    return `Colour and arrows: force of ${i} minus force of ${times}. Blank: equal.`;
  const shifted =
    Math.abs(shift) > 1e-9 ? `${times} ${shift < 0 ? "−" : "+"} ${number(Math.abs(shift))}` : times;
  return `Orange: ${i} is larger. Blue: ${shifted} is larger. Blank: equal.`;
}
