// Card with the image of the point under the pointer; for an opened point also its neighbours and
// links.
import type { MapView } from "./explore.ts";
import type { MapData, Near } from "./types.ts";
import { div, el, onward, setText } from "../../kit/dom.ts";

const MOST_VALUES = 6; // metadata values on the card; the view of one sample has all

export class Card {
  map: MapView;
  root: HTMLDivElement;
  pinned: number;
  neighbours: HTMLDivElement;
  failure: HTMLAnchorElement | undefined;
  facts: HTMLElement | undefined;
  metadata: HTMLElement | undefined;

  constructor(map: MapView) {
    this.map = map;
    this.root = el("div", { class: "card", hidden: true });
    this.pinned = -1;
  }

  show(row: number, pinned = false) {
    const { map } = this,
      { cloud, data } = map,
      index = cloud.indices[row],
      name = map.nameOf(row);
    this.pinned = pinned ? row : -1;
    this.root.classList.toggle("pinned", pinned);
    this.root.replaceChildren(
      el("img", {
        src: data.images + index,
        alt: map.titleOf(row),
        width: 128,
        height: 128,
      }),
      el("b", {}, el("bdi", {}, name)),
      (this.facts = el("small", {}, this.factsOf(row, `sample ${index}`))),
      ...(pinned ? this.links(index) : []),
    );
    this.root.hidden = false;
    this.place(row);
  }

  // Return the line below the name: the sample, unless it is the name, and the value of its colour.
  factsOf(row: number, sample: string) {
    const { map } = this,
      value = map.tooltip(row);
    return map.data.labelled || sample !== map.nameOf(row) ? `${sample}${value}` : value.slice(3);
  }

  link({ page, label, parameters }: MapData["links"][number], index: number) {
    const { map } = this,
      query = new URLSearchParams({ ...parameters, query: String(index) });
    const link = el(
      "a",
      {
        class: "button",
        href: onward(`${map.data.base}${page}`, query.toString()),
        "data-page": page,
      },
      label,
    );
    link.addEventListener("click", (e) => {
      // a plain link would reload the whole app
      if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
      e.preventDefault();
      map.tell("open", { page, index });
    });
    return link;
  }

  links(index: number) {
    const { map } = this;
    this.neighbours = div("near");
    this.metadata = div("metadata");
    const links = map.data.links.map((link) => this.link(link, index));
    this.failure = links.find((link) => link.dataset.page === "failures");
    // hidden until the nearest neighbour is known to be wrong
    if (this.failure) this.failure.hidden = true;
    return [
      this.metadata,
      this.neighbours,
      el("button", { onclick: () => map.sample.open(map.cloud.row(index)) }, "Full screen"),
      ...links,
      el(
        "button",
        {
          class: "shut",
          "aria-label": "close",
          title: "Close (Esc)",
          onclick: () => {
            map.close_card();
            map.canvas.focus();
          },
        },
        "×",
      ),
    ];
  }

  // Show the id and metadata of the opened point, and its nearest neighbours: ✓ or ✗, and the
  // distance.
  tell({ neighbours, id, metadata }: Near) {
    const { map } = this,
      { labelled } = map.data;
    if (id && this.facts) setText(this.facts, this.factsOf(this.pinned, id));
    this.metadata?.replaceChildren(...definitions(metadata.slice(0, MOST_VALUES)));
    this.neighbours?.replaceChildren(
      ...neighbours.slice(0, 5).map(({ row, right, distance }) => {
        const name = labelled
            ? `${right ? "✓ right" : "✗ wrong"}: class ${map.nameOf(row)}`
            : map.nameOf(row),
          text = `${name}, distance ${distance.toFixed(3)}`;
        return el(
          "button",
          {
            class: !labelled ? "" : right ? "right" : "wrong",
            title: text,
            "aria-label": `neighbour, ${text}`,
            onclick: () => map.open(row, true),
          },
          el("img", {
            src: map.data.images + map.cloud.indices[row],
            alt: "",
            width: 26,
            height: 26,
          }),
          !labelled ? "" : right ? "✓" : "✗",
        );
      }),
    );
    if (this.failure) this.failure.hidden = !neighbours.length || neighbours[0].right;
    if (this.pinned >= 0) this.place(this.pinned);
  }

  place(row: number) {
    const { camera, cloud } = this.map,
      [x, y] = camera.at(cloud, row),
      w = this.root.offsetWidth,
      h = this.root.offsetHeight;
    const left = x + w + 18 < camera.width ? x + 14 : x - w - 14;
    this.root.style.left = `${Math.max(4, Math.min(left, camera.width - w - 4))}px`;
    this.root.style.top = `${Math.max(4, Math.min(y - 60, camera.height - h - 4))}px`;
  }

  hide() {
    this.pinned = -1;
    this.root.hidden = true;
  }
}

// Return a list of names and values as elements.
export const definitions = (metadata: [name: string, value: string][]): HTMLElement[] =>
  metadata.length
    ? [
        el(
          "dl",
          {},
          ...metadata.flatMap(([name, value]) => [
            el("dt", {}, el("bdi", {}, name)),
            el("dd", {}, el("bdi", {}, value)),
          ]),
        ),
      ]
    : [];
