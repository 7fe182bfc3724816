// Parts of a panel that an address may hide (?hide=NAME,...).
import { createContext, toChildArray } from "preact";
import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";

const HiddenNames = createContext<ReadonlySet<string>>(new Set());

interface HidingProps {
  hidden: ReadonlySet<string>;
  children: ComponentChildren;
}

// Column of controls. Sections and controls whose names are in `hidden` are left out.
export const Panel = (props: HidingProps) => (
  <div class="panel">
    <Hiding {...props} />
  </div>
);

// The same for children that are not in a column of their own.
export const Hiding = ({ hidden, children }: HidingProps) => (
  <HiddenNames.Provider value={hidden}>{children}</HiddenNames.Provider>
);

// Return the names that the address hides.
export const useHidden = () => useContext(HiddenNames);

// Children that the address may hide.
export const Part = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <>{useHidden().has(name) ? null : children}</>
);

interface SectionProps {
  name?: string;
  title?: ComponentChildren;
  also?: string; // class
  children?: ComponentChildren;
}

// Section of a panel with its title; without a name it cannot be hidden, and empty it is left out.
export function Section({ name, title, also, children }: SectionProps) {
  const hidden = useHidden();
  if ((name && hidden.has(name)) || !toChildArray(children).length) return null;
  return (
    <section class={also}>
      {title && <h4>{title}</h4>}
      {children}
    </section>
  );
}

interface DisclosureProps {
  name: string;
  title: string;
  open?: boolean; // at first
  children: ComponentChildren;
}

// Section that opens and closes.
export function Disclosure({ name, title, open = false, children }: DisclosureProps) {
  if (useHidden().has(name)) return null;
  return (
    <details data-part={name} class="section" open={open}>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

// Element that other code makes and draws on, within the tree of a page.
export const Foreign = ({ element }: { element: Element }) => (
  <div
    style="display: contents"
    ref={(box) => {
      if (box && element.parentNode !== box) box.append(element);
    }}
  />
);
