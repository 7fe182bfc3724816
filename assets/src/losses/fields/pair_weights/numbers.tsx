// Numbers of a triplet in words: readouts of the cards and of the triplet, and descriptions.
import type { PairWeights } from "./pair_weights.tsx";
import type { Pair, Triplet } from "./types.ts";
import { show, tidy } from "../../../kit/dom.ts";
import { Text } from "../../../kit/panel/panel.tsx";

export const PAIRS: Pair[] = ["ap", "an", "pn"];
const READ = ["state", "loss", "w_ap", "w_an", "w_pn"];
const signed = (x: number) => `${x < 0 ? "−" : x > 0 ? "+" : ""}${show(Math.abs(x))}`;

/** Name of a weight: the slope of the loss along a similarity or distance. */
export const WeightName = ({ by, pair }: { by: string; pair: string }) => (
  <>
    <i>dL/d{by}</i>
    <sub>{pair}</sub>
  </>
);

/** Numbers of loss k at the triplet. */
export function CardNumbers({ app, k }: { app: PairWeights; k: number }) {
  const names = [
    "triplet",
    "loss",
    ...PAIRS.map((pair) => <WeightName by={app.view.by} pair={pair} />),
  ];
  return (
    <div class="readout">
      {READ.map((name, i) => (
        <div key={name}>
          <span>{names[i]}</span>
          <b data-readout={name}>
            <Text read={() => textsOf(app.numbers.value?.triplet, k)[i]} />
          </b>
        </div>
      ))}
    </div>
  );
}

/** Similarities and distances of the triplet. */
export const TripletNumbers = ({ app }: { app: PairWeights }) => (
  <div class="readout">
    {PAIRS.flatMap((pair) =>
      (["S", "d"] as const).map((letter) => (
        <div key={letter + pair}>
          <span>
            {letter}
            <sub>{pair}</sub>
          </span>
          <b data-edge={`${letter}_${pair}`}>
            <Text
              read={() => {
                const triplet = app.numbers.value?.triplet;
                return triplet ? show(triplet[letter][pair]) : "–";
              }}
            />
          </b>
        </div>
      )),
    )}
  </div>
);

function textsOf(triplet: Triplet | null | undefined, k: number) {
  const found = triplet?.losses[k];
  return found
    ? [
        found.active ? "active" : "no weight",
        show(found.loss),
        ...PAIRS.map((pair) => signed(found.weights[pair])),
      ]
    : ["none", "", "", "", ""];
}

const spoken = (pair: Pair) => pair.split("").join("-");

/** Describe the map of loss k for screen readers. */
export function describeMap({ view, numbers, session }: PairWeights, k: number) {
  const { triplet, at = view.at } = numbers.value ?? {},
    [state, loss, ...weights] = textsOf(triplet, k),
    { title } = session.schema.losses[view.panels[k].loss],
    found = triplet
      ? `${state}, loss ${loss}, weights ${PAIRS.map((pair, i) => `${spoken(pair)} ${weights[i]}`).join(", ")}`
      : "no such triplet";
  return `${title}: weight of the pair ${session.data.menus.weight[view.weight]}, over similarities of the positive and the negative pair. At ${at.map(tidy).join(" and ")}: ${found}`;
}

/** Describe a triplet for screen readers. */
export const describeTriplet = (triplet: Triplet | null | undefined) =>
  triplet
    ? `triplet on the unit sphere, similarities ${PAIRS.map((pair) => `${spoken(pair)} ${show(triplet.S[pair])}`).join(", ")}`
    : "no three unit vectors have these similarities";
