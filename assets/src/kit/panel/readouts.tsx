// Reports of a figure: numbers, keys of its marks, notices. Numbers and notices are signals, which
// change the text alone, so that they can follow a drag.
import type { ComponentChildren } from "preact";
import { useComputed } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";

export type Rows = readonly (readonly [name: string, text: string])[];

// Text that follows the signals that it reads.
export const Text = ({ read }: { read(): string }) => <>{useComputed(read)}</>;

// Names with their values. The panel is rendered only if the number of rows changes.
export function Readouts({ rows }: { rows: ReadonlySignal<Rows> }) {
  const count = useComputed(() => rows.value.length);
  return (
    <div class="readout">
      {Array.from({ length: count.value }, (_, i) => (
        <Readout key={i} rows={rows} index={i} />
      ))}
    </div>
  );
}

const Readout = ({ rows, index }: { rows: ReadonlySignal<Rows>; index: number }) => {
  const name = useComputed(() => rows.value[index]?.[0] ?? "");
  return (
    <div>
      <span>{name}</span>
      <b data-readout={name}>
        <Text read={() => rows.value[index]?.[1] ?? ""} />
      </b>
    </div>
  );
};

interface KeyProps {
  kind?: string;
  hidden?: boolean | ReadonlySignal<boolean>;
  children: ComponentChildren;
}

// Key of a mark in a figure; `kind` is the class of the mark ("dashed", "hatched", ...).
export const Key = ({ kind = "", hidden, children }: KeyProps) => (
  <span class="key" hidden={hidden}>
    <i class={kind} />
    {children}
  </span>
);

// Message next to a figure, announced by screen readers.
export const Notice = ({ text }: { text: ReadonlySignal<string> }) => (
  <p class="caption notice" role="status">
    {text}
  </p>
);

// Text for screen readers alone.
export const Live = ({ text }: { text: ReadonlySignal<string> }) => (
  <div class="hidden" aria-live="polite">
    {text}
  </div>
);
