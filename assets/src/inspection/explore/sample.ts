// Full-screen view of one sample: its image, neighbours, history during training, and tags.
import type { History, Near } from "./types.ts";
import type { MapView } from "./explore.ts";
import { div, el, setText } from "../../kit/dom.ts";
import { definitions } from "./card.ts";

const scores = (precision: number | null, rank: number) => [
  precision === null ? "not a query" : `AP@R ${(100 * precision).toFixed(1)} %`,
  rank ? `first hit at rank ${rank.toLocaleString("en")}` : "only sample of its class",
];

export class Sample {
  map: MapView;
  row: number;
  name: HTMLHeadingElement;
  facts: HTMLParagraphElement;
  image: HTMLDivElement;
  links: HTMLDivElement;
  metadata: HTMLDivElement;
  tags: HTMLDivElement;
  near: HTMLDivElement;
  history: HTMLDivElement;
  training: HTMLHeadingElement;
  dialog: HTMLDialogElement;
  constructor(map: MapView) {
    this.map = map;
    this.row = -1;
    this.name = el("h2", {});
    this.facts = el("p", { class: "facts", "aria-live": "polite" });
    this.image = el("div", {}); // loaded together with its sample
    this.links = div("links");
    this.metadata = div("metadata");
    this.tags = div("tags");
    this.near = div("found");
    this.history = div("history");
    this.training = el("h3", {}, "During training");
    const button = (text: string, label: string, act: () => void) =>
      el("button", { "aria-label": label, title: label, onclick: act }, text);
    this.dialog = el(
      "dialog",
      { class: "sample", "aria-label": "sample" },
      el(
        "header",
        {},
        this.name,
        el(
          "span",
          {},
          button("←", "previous sample", () => this.turn(-1)),
          button("→", "next sample", () => this.turn(1)),
          button("×", "close", () => this.dialog.close()),
        ),
      ),
      div(
        "columns",
        el("div", {}, this.image, this.facts, this.metadata, this.links, this.tags),
        el("div", {}, el("h3", {}, "Nearest neighbours"), this.near, this.training, this.history),
      ),
    );
    this.dialog.addEventListener("close", () => this.onClose());
    this.dialog.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!step || e.target instanceof HTMLInputElement) return;
      e.preventDefault();
      this.turn(step);
    });
  }

  async open(row: number) {
    const { map } = this,
      { address, cloud } = map,
      index = cloud.indices[row];
    this.row = row;
    map.look.sample = index;
    map.tellLook();
    setText(this.name, map.nameOf(row));
    setText(this.facts, map.data.labelled ? `sample ${index}` : "");
    this.training.hidden = !map.data.trained;
    this.image.replaceChildren(
      el("img", {
        class: "large",
        src: `${map.data.images}${index}?large=1`,
        alt: map.titleOf(row),
      }),
    );
    this.dialog.dataset.index = String(index);
    this.links.replaceChildren();
    this.metadata.replaceChildren();
    this.near.replaceChildren();
    this.history.replaceChildren();
    this.showTags();
    if (!this.dialog.open) this.dialog.showModal();
    const [near, history] = await Promise.all([
      this.tryFetch(`near-${row}.bin`) as Promise<Near | null>,
      (map.data.trained
        ? this.tryFetch(`history-${row}.bin`)
        : Promise.resolve(null)) as Promise<History | null>,
    ]);
    if (this.row !== row || map.address !== address) return;
    if (near) this.tell(index, near);
    if (history) this.showHistory(history);
  }

  // Return a file; show failures in this view, since the map is behind it.
  async tryFetch<A extends object>(name: string): Promise<A | null> {
    try {
      return await this.map.fetchFile(name);
    } catch (error) {
      this.history.replaceChildren(el("small", {}, (error as Error).message));
      return null;
    }
  }

  turn(step: number) {
    const { rows } = this.map.wall,
      at = rows.indexOf(this.row);
    if (rows.length) this.open(rows[(at + step + rows.length) % rows.length]);
  }

  onClose() {
    const { map } = this;
    this.row = -1;
    map.look.sample = -1;
    map.tellLook();
    map.wall.bring(map.wall.active, true);
  }

  tell(index: number, { neighbours, precision, rank, forces, id, metadata }: Near) {
    const { map } = this,
      { labelled } = map.data,
      wrong = neighbours.length > 0 && !neighbours[0].right && rank > 0;
    setText(
      this.facts,
      [
        ...(id || labelled ? [id || `sample ${index}`] : []),
        ...(labelled ? scores(precision, rank) : []),
        ...map.describe(this.row),
      ].join(" · "),
    );
    this.metadata.replaceChildren(...definitions(metadata));
    const links = map.data.links.filter(({ page }) => page !== "failures" || (wrong && forces));
    this.links.replaceChildren(...links.map((link) => map.card.link(link, index)));
    this.near.replaceChildren(
      ...neighbours.map(({ row, right, distance }, k) => {
        const name = labelled
            ? `class ${map.nameOf(row)}, ${right ? "right" : "wrong"}`
            : map.nameOf(row),
          text = `neighbour ${k + 1}: ${name}, distance ${distance.toFixed(3)}`;
        return el(
          "button",
          {
            class: !labelled ? "" : right ? "right" : "wrong",
            "aria-label": text,
            title: text,
            onclick: () => this.open(row),
          },
          el("img", { src: map.data.images + map.cloud.indices[row], alt: "" }),
          el("small", {}, `${!labelled ? "" : right ? "✓ " : "✗ "}${distance.toFixed(3)}`),
          el("small", { class: "class" }, map.nameOf(row)),
        );
      }),
    );
  }

  showHistory({ moments, kept }: History) {
    const { map } = this;
    if (!moments.length) {
      const text = kept
        ? `This run has ${kept} checkpoints without embeddings. Open Differences to compute them.`
        : "This run has no intermediate checkpoints. Train a run that keeps checkpoints to see the history of a sample.";
      this.history.replaceChildren(el("small", {}, text));
      return;
    }
    this.history.replaceChildren(
      ...moments.map(({ step, nearest, right, rank, distance }) => {
        const text = `step ${step.toLocaleString("en")}: nearest neighbour ${right ? "right" : "wrong"}, distance ${distance.toFixed(3)}, first hit at rank ${rank}`;
        return el(
          "figure",
          { class: right ? "right" : "wrong", title: text },
          el("img", { src: map.data.images + nearest, alt: text }),
          el(
            "figcaption",
            {},
            el("b", {}, `${right ? "✓" : "✗"} ${step.toLocaleString("en")}`),
            el("small", {}, `rank ${rank.toLocaleString("en")}`),
          ),
        );
      }),
    );
  }

  // Show the tags of the sample as switches.
  showTags() {
    const { map, row } = this,
      { facets, data } = map;
    if (row < 0) return;
    this.tags.replaceChildren(
      ...facets.tags.map((name, k) => {
        const on = facets.masks[k][row] === 1;
        return el(
          "button",
          {
            "aria-pressed": String(on),
            disabled: Boolean(data.closed),
            onclick: () => map.keep({ tag: name, index: map.cloud.indices[row], on: !on }),
          },
          name,
        );
      }),
      this.tagForm(),
    );
  }

  tagForm() {
    const { map } = this;
    if (map.data.closed) return el("small", {}, map.data.closed);
    const input = el("input", {
      placeholder: "new tag",
      "aria-label": "new tag of this sample",
      maxlength: 40,
    });
    const form = el("form", {}, input, el("button", {}, "Tag"));
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      if (input.value.trim())
        map.keep({ tag: input.value, index: map.cloud.indices[this.row], on: true });
    });
    return form;
  }
}
