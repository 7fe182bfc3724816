// Panels of figures, rendered by preact from the schema that Python sends.
//
// A page writes its panel as one function of its state and mounts it once:
//
//   const show = mountPanel(side, () => (
//     <Panel hidden={app.hidden}>
//       <LossPanel schema={schema} state={state} onInput={draft} onRest={commit} onLoss={commit} />
//       <Section name="shown" title="Shown">
//         <Switches shown={app.shown} rows={SHOWN} onChange={(key, on) => ...} />
//       </Section>
//     </Panel>
//   ));
//   show(); // renders again, whenever the state has changed other than by a control
//
// - Controls report changes by onInput (while dragged) and onRest (at the end), or by onChange. A
//   control that is dragged updates itself: call `show` only if other parts of the panel depend on
//   it. When the panel is rendered, the values of the application win. Elements and focus are kept.
// - What follows a drag or a player is a signal: readouts, notices, coordinates, the step shown.
//   Assigning its value changes the text of one element without rendering the panel.
// - `hide=NAME` in the address leaves out the Section, Part or control of that name.
// - A component of yours that reads a signal is rendered only if its properties change: give it values,
//   not the application.
// - A figure may be part of the tree: <canvas ref={app.setCanvas} />, <Foreign element={chart} />.
//
//   Panel, Section, Part, Disclosure      layout, and what the address hides       section.tsx
//   Foreign                               an element that other code draws on        section.tsx
//   Control, IntegerBox, Letter           a parameter of the schema                slider.tsx
//   Menu, MenuField, Pills, Switch(es)    choices                                  choices.tsx
//   Presets, PresetButtons, PresetCaption presets                                  choices.tsx
//   LossPanel, LossMenu, LossFormula, ... loss with its parameters                 loss_panel.tsx
//   PointRows                             coordinates of a triplet                 points.tsx
//   Readouts, Text, Key, Notice, Live     numbers, legend, messages                readouts.tsx
//   Formula, Prose                        KaTeX                                    formula.tsx
//   PresentButtons, ExportLinks, CopyLink exports                                  export_menu.tsx
//   Transport                             play, step, scrub                        transport.tsx
//   clamp, defaultsOf, findPreset, ...    values without elements                  values.ts
import { render } from "preact";
import type { ComponentChildren } from "preact";

export * from "./choices.tsx";
export * from "./export_menu.tsx";
export * from "./formula.tsx";
export * from "./loss_panel.tsx";
export * from "./points.tsx";
export * from "./readouts.tsx";
export * from "./section.tsx";
export * from "./slider.tsx";
export * from "./transport.tsx";
export * from "./values.ts";

// Render a view into an element, and return the function that renders it again. The focus stays on
// its control, also if the control moves, or another element with its aria-label replaces it.
export function mountPanel(into: HTMLElement, view: () => ComponentChildren) {
  const show = () => {
    const root = into.getRootNode() as Document | ShadowRoot,
      before = root.activeElement as HTMLElement | null;
    render(<>{view()}</>, into);
    if (!before || before === root.activeElement) return;
    const label = before.getAttribute("aria-label");
    if (into.contains(before)) before.focus({ preventScroll: true });
    else if (label && !before.isConnected)
      into.querySelector<HTMLElement>(`[aria-label="${CSS.escape(label)}"]`)?.focus();
  };
  show();
  return show;
}
