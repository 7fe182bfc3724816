// Verdict on the pair: a word, a sentence with numbers, and the question.
import type { Compare } from "./compare.tsx";
import { useComputed } from "@preact/signals";
import { Menu, Switch, Text } from "../../../kit/panel/panel.tsx";
import { number } from "./numbers.ts";

const SPACES = { plane: "anywhere in the plane", sphere: "on the unit sphere" };
const ON_SPHERE = " Only tangential forces are shown, because normalisation removes the rest.";

/** Return the verdict in a sentence with numbers. */
export const verdictOf = ({ answer, state }: Compare) =>
  `${answer.value?.same.sentence ?? ""}${state.space === "sphere" ? ON_SPHERE : ""}`;

export function Judgement({ app }: { app: Compare }) {
  const { state, answer } = app;
  return (
    <div class="judgement">
      <Verdict app={app} />
      <div class="asked">
        <label>
          Triplets
          <Menu
            label="compared over triplets"
            offers={SPACES}
            value={state.space}
            onChange={(space) => app.change({ space: space as keyof typeof SPACES })}
          />
        </label>
        <Switch
          checked={state.orders}
          title="Compare L(a, p, n) + L(p, a, n), because the sum over a batch contains both"
          onChange={(orders) => app.change({ orders })}
        >
          sum over both orders of A and P
        </Switch>
        <Switch
          checked={state.fit}
          title="Multiply the second loss by its best factor, so that equal losses look equal"
          onChange={(fit) => app.change({ fit })}
        >
          <span>
            multiply loss {state.pair[1] + 1} by{" "}
            <Text
              read={() => {
                const same = answer.value?.same;
                return same?.usable ? number(same.factor) : "the best factor (none is positive)";
              }}
            />
          </span>
        </Switch>
      </div>
    </div>
  );
}

// The word is read out when it changes.
function Verdict({ app }: { app: Compare }) {
  const found = useComputed(() => app.answer.value?.same),
    kind = useComputed(() => (found.value?.same ? "verdict same" : "verdict")),
    factor = useComputed(() => String(found.value?.factor ?? ""));
  return (
    <div class={kind} data-factor={factor}>
      <b class="word" aria-live="polite">
        <Text
          read={() =>
            found.value ? (found.value.same ? "✓ The same loss" : "✗ Different losses") : ""
          }
        />
      </b>
      <p>
        <Text read={() => verdictOf(app)} />
      </p>
    </div>
  );
}
