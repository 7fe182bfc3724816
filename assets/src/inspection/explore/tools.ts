// Row of controls above map and images.
import type { Colouring, Look } from "./types.ts";
import type { MapView } from "./explore.ts";
import { el } from "../../kit/dom.ts";
import { presentButton } from "../../kit/present/present.ts";
import { isMetadata } from "./facets.ts";

// Return the options of a menu; metadata columns form a group.
function options(titles: Record<string, string>) {
  const option = ([value, title]: [string, string]) => el("option", { value }, title),
    entries = Object.entries(titles),
    columns = entries.filter(([name]) => isMetadata(name));
  return [
    ...entries.filter(([name]) => !isMetadata(name)).map(option),
    ...(columns.length ? [el("optgroup", { label: "metadata" }, ...columns.map(option))] : []),
  ];
}

export class Tools {
  map: MapView;
  offered: string;
  tools: HTMLButtonElement[];
  colour: HTMLSelectElement;
  sort: HTMLSelectElement;
  size: HTMLInputElement;
  boxes: Record<string, HTMLInputElement>;
  named: HTMLLabelElement;
  count: HTMLOutputElement;
  clear: HTMLButtonElement;
  csv: HTMLAnchorElement;
  root: HTMLDivElement;
  constructor(map: MapView) {
    this.map = map;
    this.offered = ""; // menus that are shown, as JSON
    const tool = (name: string, text: string, help: string) =>
      el(
        "button",
        {
          "data-tool": name,
          "aria-pressed": String(name === map.tool),
          title: help,
          onclick: () => map.take(name),
        },
        text,
      );
    this.tools = [
      tool("move", "Move", "Drag to move the map (M); Shift and drag draws a lasso"),
      tool("lasso", "Lasso", "Draw around points to select them (L); hold Shift to add them"),
    ];
    const menu = (label: string, act: (value: string) => void) => {
      const select = el("select", { "aria-label": label, title: label });
      select.addEventListener("change", () => act(select.value));
      return select;
    };
    this.colour = menu("colour by", (value) => {
      map.look.colour = value as Colouring;
      map.recolour();
      map.tellLook();
    });
    this.sort = menu("order of the images", (value) => {
      map.look.sort = value as Look["sort"];
      map.reorder();
      map.tellLook();
    });
    this.size = el("input", {
      type: "range",
      min: 28,
      max: 200,
      step: 4,
      "aria-label": "size of the images",
    });
    this.size.addEventListener("input", () => {
      map.look.size = Number(this.size.value);
      map.wall.layOut();
      map.tellLook();
    });
    const box = (name: "names" | "images" | "contours", label: string, help: string) => {
      const input = el("input", { type: "checkbox" });
      input.addEventListener("change", () => {
        map.look[name] = input.checked;
        map.draw();
        map.tellLook();
      });
      this.boxes[name] = input;
      return el("label", { class: "box", title: help }, input, label);
    };
    this.boxes = {};
    this.named = box(
      "names",
      "names",
      "Show the name of each class next to its most central point",
    );
    this.count = el("output", { class: "count", "aria-label": "selected" });
    this.clear = el(
      "button",
      { class: "all", hidden: true, onclick: () => map.clearFilters() },
      "Clear filters",
    );
    this.csv = el(
      "a",
      { class: "button", download: "", title: "Position and attributes of every point" },
      "CSV",
    );
    this.root = el(
      "div",
      { class: "bar" },
      el("span", { class: "tools", role: "group", "aria-label": "tool" }, ...this.tools),
      el("label", { class: "box" }, "colour by", this.colour),
      this.named,
      box("images", "images", "Show points as images when at most 150 are in view"),
      box(
        "contours",
        "density",
        "Draw lines around the smallest regions that contain 25 to 90 % of the points",
      ),
      el("label", { class: "box" }, "size", this.size),
      this.sort,
      this.count,
      this.clear,
      el(
        "span",
        { class: "take" },
        map.keeping.root,
        ...presentButton(map),
        el(
          "button",
          { title: "The map as shown, at twice the resolution", onclick: () => map.png() },
          "PNG",
        ),
        this.csv,
      ),
    );
  }

  // Fill the menus with what the map offers. Their width determines the height of the row, so this
  // comes before the height of the map is measured.
  offer() {
    const { menus, labelled } = this.map.data,
      offered = JSON.stringify(menus);
    this.named.hidden = !labelled;
    if (offered === this.offered) return;
    this.offered = offered;
    this.colour.replaceChildren(...options(menus.colour));
    this.sort.replaceChildren(...options(menus.sort));
  }

  // Update the controls to the current display settings.
  show() {
    const { look } = this.map;
    this.colour.value = look.colour;
    this.sort.value = look.sort;
    this.size.value = String(look.size);
    for (const [name, box] of Object.entries(this.boxes))
      box.checked = look[name as "names" | "images" | "contours"];
  }
}
