// Tags for all images shown, and named views of this page; both are stored with the run.
import { keep } from "./actions.ts";
import { marked, packed } from "./cloud.ts";
import { useMap } from "./context.ts";

// Text box with a button; `act` receives what was typed.
export function NameForm({
  placeholder,
  label = placeholder,
  button,
  disabled,
  act,
}: {
  placeholder: string;
  label?: string;
  button: string;
  disabled?: boolean;
  act(name: string): void;
}) {
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        const box = e.currentTarget.elements[0] as HTMLInputElement;
        if (box.value.trim()) act(box.value);
        box.value = "";
      }}
    >
      <input placeholder={placeholder} aria-label={label} maxLength={40} disabled={disabled} />
      <button disabled={disabled}>{button}</button>
    </form>
  );
}

// Return a listener for a link that Python follows: the browser would reload the whole app.
export const followedBy = (act: () => void) => (e: MouseEvent) => {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  act();
};

export function Keeping() {
  const map = useMap(),
    { s } = map,
    { run, views, closed } = s.data.value,
    disabled = Boolean(closed);
  const tag = (name: string) => {
    const bits = packed(marked(s.cloud.peek()?.count ?? 0, s.rows.peek()));
    keep(map, { tag: name, bits, on: true });
  };
  return (
    <details class="keeping">
      <summary class="button">Tags and views</summary>
      <div class="sheet">
        <NameForm
          placeholder="tag for the images shown"
          button="Tag"
          disabled={disabled}
          act={tag}
        />
        <NameForm
          placeholder="name of this view"
          button="Keep"
          disabled={disabled}
          act={(view) => keep(map, { view })}
        />
        <ul class="views">
          {views.map(({ name, query }) => (
            <li key={name}>
              <a
                href={`${location.pathname}?${new URLSearchParams({ run })}&${query}`}
                onClick={followedBy(() => keep(map, { open: name }))}
              >
                <bdi>{name}</bdi>
              </a>
              <button
                aria-label={`remove the view ${name}`}
                title="remove"
                disabled={disabled}
                onClick={() => keep(map, { drop: name })}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
        <small>{closed || "Tags and views are stored with the run. A view is also a link."}</small>
      </div>
    </details>
  );
}
