// Controls of numbers and options of the schema: a slider with its number box, or a menu.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import type { Choice, Parameter, Setting, Slider as SliderSchema, ValueOf } from "../types.ts";
import { symbolParts, tidy } from "../dom.ts";
import { clamp, sliderRange, typedNumber } from "./values.ts";

export interface ControlProps<P extends Parameter> {
  schema: P;
  value: Setting;
  onInput(value: ValueOf<P>): void; // while it changes
  onRest(): void; // at the end of a change
}

// Letter of a formula in plain text, e.g. \rho or m_1.
export function Letter({ latex }: { latex: string }) {
  const [base, index] = symbolParts(latex);
  return (
    <>
      {base}
      {index && <sub>{index}</sub>}
    </>
  );
}

// Control of one parameter of the schema: slider and number box, or a menu.
export const Control = <P extends Parameter>(props: ControlProps<P>) =>
  props.schema.options ? (
    <Options {...(props as unknown as ControlProps<Choice>)} />
  ) : (
    <Slider {...(props as unknown as ControlProps<SliderSchema>)} rendering={{}} />
  );

const Row = ({ schema, children }: { schema: Parameter; children: ComponentChildren }) => (
  <div class="control" data-name={schema.name}>
    <span class="symbol" title={schema.help}>
      <Letter latex={schema.symbol} />
    </span>
    {children}
  </div>
);

const Options = ({ schema, value, onInput, onRest }: ControlProps<Choice>) => (
  <Row schema={schema}>
    <select
      aria-label={schema.name}
      title={schema.help}
      style="grid-column: 2 / 4"
      value={String(value)}
      onChange={(e) => {
        onInput(e.currentTarget.value);
        onRest();
      }}
    >
      {schema.options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  </Row>
);

// While it is dragged, only the text of its box and what screen readers hear change; the value of
// the application wins whenever the panel is rendered. Components that use signals are skipped if
// no property differs, as after a drag that the application has reset: `rendering` always differs.
function Slider({
  schema,
  value,
  onInput,
  onRest,
}: ControlProps<SliderSchema> & { rendering: object }) {
  const { name, help } = schema,
    given = value as number | null,
    range = sliderRange(schema, given),
    bar = useRef<HTMLInputElement>(null),
    current = useSignal(given),
    finite = useRef(schema.default ?? schema.high); // where the bar stands while infinite
  current.value = given;
  finite.current = given ?? finite.current;
  const text = useComputed(() => tidy(current.value)),
    spoken = useComputed(() => tidy(current.value ?? finite.current)),
    infinite = useComputed(() => current.value === null),
    hint = useComputed(() => (current.value === null ? "∞" : ""));
  const use = (x: number | null) => {
    finite.current = x ?? finite.current;
    current.value = x;
    onInput(x);
  };
  const place = () => {
    if (bar.current) bar.current.value = String(range.position(finite.current));
  };
  return (
    <Row schema={schema}>
      <input
        type="range"
        ref={bar}
        aria-label={name}
        aria-valuetext={spoken}
        title={help}
        min={range.min}
        max={range.max}
        step={range.step}
        disabled={infinite}
        value={String(range.position(finite.current))}
        onInput={(e) => use(range.valueAt(Number(e.currentTarget.value)))}
        onChange={onRest}
      />
      <input
        type="number"
        step="any"
        aria-label={`${name} value`}
        title={help}
        disabled={infinite}
        placeholder={hint}
        value={text}
        onChange={(e) => {
          const x = typedNumber(e.currentTarget.value);
          if (x === null) {
            e.currentTarget.value = text.peek();
            return;
          }
          use(x);
          place();
          onRest();
        }}
      />
      {schema.optional && (
        <label class="open">
          <input
            type="checkbox"
            aria-label={`${name} open`}
            checked={infinite}
            onChange={(e) => {
              use(e.currentTarget.checked ? null : finite.current);
              onRest();
            }}
          />
          no upper clamp
        </label>
      )}
    </Row>
  );
}

interface IntegerProps {
  label: string;
  value: number;
  range: readonly [low: number, high: number];
  title?: string;
  onChange(value: number): void;
}

// Number box of an integer in low..high. A typed number is rounded and limited to the range.
export function IntegerBox({ label, value, range: [low, high], title, onChange }: IntegerProps) {
  return (
    <input
      type="number"
      aria-label={label}
      title={title || undefined}
      min={low}
      max={high}
      step={1}
      value={String(value)}
      onChange={({ currentTarget: box }) => {
        const x = typedNumber(box.value);
        box.value = String(x === null ? value : clamp(Math.round(x), low, high));
        if (x !== null) onChange(Number(box.value));
      }}
    />
  );
}
