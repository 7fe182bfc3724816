// Loss of a figure: menu over the catalogue, formula, and a control per hyper-parameter.
import type { ComponentChildren } from "preact";
import type { Hyper, Loss, Schema } from "../types.ts";
import { Formula } from "./formula.tsx";
import { Menu } from "./choices.tsx";
import { Control } from "./slider.tsx";
import { Section, useHidden } from "./section.tsx";
import { defaultsOf, settingOf } from "./values.ts";

export interface LossProps {
  schema: Pick<Schema, "losses">;
  state: { loss: string; hyper: Hyper }; // modified in place
}

export interface LossMenuProps extends LossProps {
  onLoss(): void; // after another loss was chosen, with its defaults
  label?: string; // of the menu
  heading?: ComponentChildren;
  children?: ComponentChildren; // below the menu
}

export interface LossControlsProps extends LossProps {
  onInput(name: string): void; // while a control changes
  onRest(name: string): void; // at the end of a change
  called?(name: string): string; // names of the controls where a page has several panels
}

// Sections of a loss, hidden as "loss-menu" and by the names of its hyper-parameters.
export const LossPanel = (props: LossMenuProps & LossControlsProps) => (
  <>
    <LossMenu {...props} />
    <LossControls {...props} />
  </>
);

// Menu over the losses of the catalogue.
export const LossMenu = ({
  schema: { losses },
  state,
  onLoss,
  label = "loss",
  heading = "Loss",
  children,
}: LossMenuProps) => (
  <Section name="loss-menu" title={heading}>
    <Menu
      label={label}
      offers={losses}
      value={state.loss}
      onChange={(loss) => {
        state.loss = loss;
        state.hyper = defaultsOf(losses[loss]);
        onLoss();
      }}
    />
    {children}
  </Section>
);

// One control per hyper-parameter of a loss.
export function LossControls({
  schema: { losses },
  state,
  onInput,
  onRest,
  called = (name) => name,
}: LossControlsProps) {
  const { controls } = losses[state.loss],
    hidden = useHidden();
  return (
    <section>
      {controls
        .filter((c) => !hidden.has(c.name))
        .map((c) => (
          <Control
            key={c.name}
            schema={{ ...c, name: called(c.name) }}
            value={settingOf(state.hyper, c)}
            onInput={(x) => {
              state.hyper[c.name] = x;
              onInput(c.name);
            }}
            onRest={() => onRest(c.name)}
          />
        ))}
      {!controls.length && <p class="caption">This loss has no parameters.</p>}
    </section>
  );
}

// Formula of a loss, one sentence about it, and its source.
export const LossFormula = ({ loss }: { loss: Loss }) => (
  <>
    <Formula latex={loss.latex} />
    <p class="caption">
      {loss.sentence} <small>{loss.source}</small>
    </p>
  </>
);
