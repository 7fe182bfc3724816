// Elements of the page around the figure, and its keys.
import type { Fields } from "./plane.ts";
import { div, el } from "../dom.ts";

const RESET = "Reset parameters, points and view";

/** Return the elements of the page with the parts of `app`. */
export function stageOf(app: Fields) {
  const { figure, lessons, readout, explain, panel, hidden, data, variant } = app;
  const landscapeButton = el(
    "button",
    {
      class: "in-space",
      title: "Show the loss as a surface, with a marble that follows the force",
      onclick: () => {
        app.touch();
        app.scene.landscape = !app.scene.landscape;
        app.rest();
      },
    },
    "Landscape in 3-D",
  );
  if (data.landscape && !hidden.has("shown")) figure.legend.append(landscapeButton);
  figure.root.append(readout.notice);
  const left = [lessons.row, figure.root, figure.legend, readout.box, explain.cutBox],
    stage = div("stage", div("left", ...left), panel.side);
  if (!hidden.has("explain")) stage.append(explain.side);
  if (variant.bare)
    figure.legend.append(
      el("button", { class: "reset", title: RESET, onclick: () => app.edit.reset() }, "Reset"),
    );
  const whole = variant.bare ? div("lab", figure.root, figure.legend) : div("lab", stage);
  whole.addEventListener("keydown", (event) => undoByKey(app, event));
  return { whole, stage, landscapeButton };
}

function undoByKey({ edit }: Fields, event: KeyboardEvent): void {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  if ((event.target as Element).matches("input[type=number], input[type=text]")) return;
  event.preventDefault();
  if (event.shiftKey) edit.redo();
  else edit.undo();
}
