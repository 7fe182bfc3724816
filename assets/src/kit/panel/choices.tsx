// Choices among named options: menus, pills, switches, presets.
import type { ComponentChildren } from "preact";
import type { Signal } from "@preact/signals";

export type Offer = string | { title: string; help?: string };

interface MenuProps {
  label: string;
  offers: Record<string, Offer>; // by value
  value: unknown;
  title?: string;
  onChange(value: string): void;
}

// Menu over options, each with a title and optionally a help text.
export const Menu = ({ label, offers, value, title, onChange }: MenuProps) => (
  <select
    aria-label={label}
    title={title || undefined}
    value={String(value)}
    onChange={(e) => onChange(e.currentTarget.value)}
  >
    {Object.entries(offers).map(([name, offer]) => {
      const about = typeof offer === "string" ? { title: offer } : offer;
      return (
        <option key={name} value={name} title={about.help}>
          {about.title}
        </option>
      );
    })}
  </select>
);

// Menu after its label; its tooltip is the help text of the chosen option.
export function MenuField(props: MenuProps) {
  const chosen = props.offers[String(props.value)];
  return (
    <label>
      {props.label}
      <Menu {...props} title={typeof chosen === "object" ? chosen.help : undefined} />
    </label>
  );
}

export interface Pill {
  value: string;
  text?: string; // default: the value
  label?: string; // for screen readers, if the text is too short
  title?: string;
  disabled?: boolean;
}

interface PillsProps {
  label?: string;
  pills: readonly Pill[];
  value: unknown;
  onChange(value: string): void;
  children?: ComponentChildren;
  also?: string; // further classes
}

// Buttons of which one is pressed. Other buttons may follow as children.
export const Pills = ({ label, pills, value, onChange, children, also = "" }: PillsProps) => (
  <div class={`pills ${also}`.trim()} role={label ? "group" : undefined} aria-label={label}>
    {pills.map(({ value: name, text = name, label: named, title, disabled }) => (
      <button
        key={name}
        aria-pressed={name === value}
        aria-label={named}
        title={title}
        disabled={disabled}
        onClick={() => onChange(name)}
      >
        {text}
      </button>
    ))}
    {children}
  </div>
);

interface SwitchProps {
  checked: boolean;
  title?: string;
  also?: string; // class
  onChange(on: boolean): void;
  children: ComponentChildren;
}

// Check box with its text.
export const Switch = ({ checked, title, also, onChange, children }: SwitchProps) => (
  <label class={also} title={title}>
    <input type="checkbox" checked={checked} onChange={(e) => onChange(e.currentTarget.checked)} />
    {children}
  </label>
);

interface SwitchesProps<K extends string> {
  shown: Readonly<Record<K, boolean>>;
  rows: readonly (readonly [key: K, text: string, title?: string])[];
  onChange(key: K, on: boolean): void;
}

// Check boxes for parts of a figure.
export const Switches = <K extends string>({ shown, rows, onChange }: SwitchesProps<K>) => (
  <div class="switches">
    {rows.map(([key, text, title]) => (
      <Switch key={key} checked={shown[key]} title={title} onChange={(on) => onChange(key, on)}>
        {text}
      </Switch>
    ))}
  </div>
);

export interface PresetProps {
  offers: readonly { title: string; caption: string }[];
  pressed: Signal<number | null>; // index of the preset shown; null if the state is another one
  onPress(index: number): void;
  otherwise?: string; // caption while none is pressed
  filter?(index: number): boolean; // the presets to offer; default: all
}

// Buttons that load presets.
export const PresetButtons = ({ offers, pressed, onPress, filter = () => true }: PresetProps) => (
  <>
    {offers.map(
      ({ title }, i) =>
        filter(i) && (
          <button
            key={i}
            data-preset={i}
            aria-pressed={pressed.value === i}
            onClick={() => onPress(i)}
          >
            {title}
          </button>
        ),
    )}
  </>
);

// Description of the preset that is pressed.
export const PresetCaption = ({ offers, pressed, otherwise = "" }: PresetProps) => (
  <p class={pressed.value === null ? "caption hint" : "caption"} aria-live="polite">
    {offers[pressed.value ?? -1]?.caption ?? otherwise}
  </p>
);

// Row of presets and the description of the one that is pressed.
export const Presets = (props: PresetProps) => (
  <>
    <div class="try">
      <small>Try</small>
      <PresetButtons {...props} />
    </div>
    <PresetCaption {...props} />
  </>
);
