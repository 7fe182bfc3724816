// Rows of the three points of a triplet: radio button of the scanning point, name, and one box per
// axis.
import { useRef } from "preact/hooks";
import { useComputed, useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";
import type { Point, Theme } from "../types.ts";
import { INK, POINTS } from "../colours.ts";
import { tidy } from "../dom.ts";
import { typedNumber, withinReach } from "./values.ts";

// Values that the rows show. Assign another object whenever a point moves; the boxes follow without a
// rendering of the panel.
export type Places = Readonly<Record<Point, readonly number[]>> & {
  readonly probe?: unknown; // the scanning point
  readonly theme: Theme;
};

export interface PointRowsProps {
  places: ReadonlySignal<Places>;
  onProbe(name: Point): void;
  // A coordinate was typed. Returns the place that the point took, if it is another one (snapped,
  // wrapped).
  onMove(name: Point, axis: number, x: number): readonly number[] | void;
  axes?: readonly string[];
  space?: string; // name of the space that is scanned
  reach?: number; // largest coordinate
}

export function PointRows({ axes = ["x", "y"], space = "plane", ...rest }: PointRowsProps) {
  return (
    <div
      class="points"
      style={`grid-template-columns: 20px minmax(0, 1fr) repeat(${axes.length}, 74px)`}
    >
      <small title={`the point that scans the ${space}`}>scan</small>
      <span />
      {axes.map((axis) => (
        <small key={axis}>{axis}</small>
      ))}
      {POINTS.map((name) => (
        <PointRow key={name} name={name} axes={axes} {...rest} />
      ))}
    </div>
  );
}

function PointRow({
  name,
  axes,
  places,
  onProbe,
  onMove,
  reach = 100,
}: Omit<PointRowsProps, "axes" | "space"> & { name: Point; axes: readonly string[] }) {
  const checked = useComputed(() => places.value.probe === name),
    colour = useComputed(() => `background: ${INK[places.value.theme][name]}`);
  return (
    <>
      <input
        type="radio"
        name="probe"
        value={name}
        aria-label={`scan with ${name}`}
        title="Scan with this point: colour and arrows show its loss and force at each position"
        checked={checked}
        onChange={() => onProbe(name)}
      />
      <span class="swatch">
        <i class={name} style={colour} />
        {name}
      </span>
      {axes.map((axis, i) => (
        <CoordinateBox
          key={axis}
          label={`${name} ${axis}`}
          read={() => places.value[name][i]}
          onMove={(x) => {
            const moved = onMove(name, i, withinReach(x, reach));
            return moved ? moved[i] : withinReach(x, reach);
          }}
        />
      ))}
    </>
  );
}

interface CoordinateProps {
  label: string;
  read(): number | undefined;
  onMove(x: number): number;
}

// Number box that follows a coordinate, except while somebody types into it.
function CoordinateBox({ label, read, onMove }: CoordinateProps) {
  const box = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    const text = tidy(read()),
      { current } = box;
    if (current && current !== (current.getRootNode() as ShadowRoot).activeElement)
      current.value = text;
  });
  return (
    <input
      ref={box}
      type="number"
      step="any"
      aria-label={label}
      onChange={({ currentTarget }) => {
        const x = typedNumber(currentTarget.value);
        currentTarget.value = tidy(x === null ? read() : onMove(x));
      }}
    />
  );
}
