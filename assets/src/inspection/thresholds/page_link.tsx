// Link to another page about the same run.
import type { ComponentChildren } from "preact";
import type { PartProps } from "./page.tsx";

// With a modifier key it is an ordinary link; without, following it would load the whole app again.
export function PageLink({
  state,
  page,
  parameters,
  title,
  children,
}: PartProps & {
  page: string;
  parameters: Record<string, number>; // next to those of the run
  title?: string;
  children: ComponentChildren;
}) {
  const query = new URLSearchParams(state.data.value.parameters);
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    state.open(page, parameters);
  };
  return (
    <a href={`${page}?${query}`} title={title} onClick={follow}>
      {children}
    </a>
  );
}
