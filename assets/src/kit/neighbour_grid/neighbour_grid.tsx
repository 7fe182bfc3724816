// Clicks and keys on the tiles of neighbour_grid.py, sent to Python: a plain link would reload the whole app.

import { render as renderTree } from "preact";
import { useRef } from "preact/hooks";
import type { GalleryData } from "./types.ts";
import type { Mounted, SetState } from "../types.ts";

const AHEAD = 300; // ms between two checks that all images are loaded
const TILES = ".neighbours a.frame";
const TYPING =
  "input, textarea, select, [contenteditable], [role=listbox], [role=slider], [role=radio], dialog";

const shownImages = () => [...document.querySelectorAll(`${TILES} img`)] as HTMLImageElement[];

// Keys that always work, then those that only some pages handle.
type Row = [keys: string[], words: string];
const KEYS: Row[] = [
  [["←", "→", "↑", "↓"], "from image to image"],
  [["Enter"], "make the image the query"],
];
const MORE: Record<string, Row> = {
  forces: [["f"], "show the forces of this failure"],
  map: [["m"], "show the image on the map"],
  pages: [["n", "p"], "next and previous page"],
  back: [["Esc"], "back to all queries"],
};

class Gallery {
  data: GalleryData;
  tell: SetState;
  private missing = false;
  private refocus = false;
  private seen: number | undefined; // first sample when the page was last shown
  private waiting: ReturnType<typeof setTimeout> | undefined;
  private readonly root = document.createElement("div");
  private readonly stopped = new AbortController();

  constructor(root: HTMLElement) {
    root.append(this.root);
    const { signal } = this.stopped;
    // Error events of images do not bubble, so they are captured.
    const fail = ({ target }: Event) => {
      if (target instanceof Element && target.matches(`${TILES} img`)) this.draw(true);
    };
    document.addEventListener("error", fail, { capture: true, signal });
    document.addEventListener("click", (event) => this.click(event), { signal });
    document.addEventListener("keydown", (event) => this.press(event), { signal });
  }

  end() {
    clearTimeout(this.waiting);
    this.stopped.abort();
    renderTree(null, this.root);
    this.root.remove();
  }

  // Draw the button for the keys, and say whether images are missing.
  private draw(missing = this.missing) {
    this.missing = missing;
    renderTree(<Keys keys={this.data?.keys ?? []} missing={missing} />, this.root);
  }

  show({ data, setTriggerValue }: { data: GalleryData; setTriggerValue: SetState }) {
    this.data = data;
    this.tell = setTriggerValue;
    // Images may have failed before this listener was installed.
    const failed = (image: HTMLImageElement) => image.complete && !image.naturalWidth;
    this.draw(data.first === this.seen ? this.missing : shownImages().some(failed));
    if (this.refocus && data.first !== this.seen) this.focusFirst(40);
    this.seen = data.first;
    clearTimeout(this.waiting);
    if (data.ahead.length) this.waiting = setTimeout(() => this.fetchAhead(data), AHEAD);
  }

  // Load the images of the next page into the browser's cache once those of this page are loaded.
  private fetchAhead(data: GalleryData) {
    const shown = shownImages();
    if (data !== this.data) return;
    if (
      document.hidden ||
      !shown.every(
        (image) =>
          image.complete ||
          (image.loading === "lazy" && image.getBoundingClientRect().top > innerHeight),
      )
    ) {
      this.waiting = setTimeout(() => this.fetchAhead(data), AHEAD);
      return;
    }
    for (const index of data.ahead)
      Object.assign(new Image(), { fetchPriority: "low", src: data.images + index });
  }

  // Focus the first tile; the tiles of an answer arrive shortly after the data.
  private focusFirst(patience: number) {
    const first = document.querySelector(TILES) as HTMLElement | null;
    if (first && Number(first.dataset.index) === this.data.first) {
      this.refocus = false;
      first.focus();
    } else if (patience) setTimeout(() => this.focusFirst(patience - 1), 50);
  }

  private click(event: MouseEvent) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const closest = (selector: string) =>
      event.target instanceof Element
        ? (event.target.closest(selector) as HTMLElement | null)
        : null;
    const forces = closest(".neighbours a.forces"),
      link = forces ?? closest(`${TILES}[data-index]`);
    if (!link || (forces && !this.data.keys.includes("forces"))) return;
    event.preventDefault();
    if (forces) return this.tell("forces", forces.dataset.forces);
    this.refocus = event.detail === 0; // click by keyboard
    this.tell("query", Number(link.dataset.index));
  }

  private press(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = event.composedPath()[0];
    if (!(at instanceof Element) || at.closest(TYPING)) return;
    const tile = at.closest(TILES) as HTMLElement | null,
      has = (name: string) => this.data.keys.includes(name);
    const done = () => event.preventDefault();
    if (event.key === "?") {
      done();
      this.root.querySelector("dialog")?.showModal();
    } else if (
      event.key.startsWith("Arrow") &&
      (tile || (event.key === "ArrowRight" && at === document.body))
    ) {
      done();
      this.move(tile, event.key);
    } else if (event.key === "f" && has("forces") && tile?.dataset.forces) {
      done();
      this.tell("forces", tile.dataset.forces);
    } else if (event.key === "m" && has("map") && tile?.dataset.index) {
      done();
      this.tell("map", Number(tile.dataset.index));
    } else if ((event.key === "n" || event.key === "p") && has("pages")) {
      done();
      this.refocus = Boolean(tile);
      this.tell("turn", event.key === "n" ? 1 : -1);
    } else if (event.key === "Escape" && has("back") && (tile || at === document.body)) {
      done();
      this.refocus = Boolean(tile);
      this.tell("back", true);
    }
  }

  private move(tile: HTMLElement | null, key: string) {
    const tiles = [...document.querySelectorAll(TILES)] as HTMLElement[];
    if (!tile) return tiles[0]?.focus();
    if (key === "ArrowLeft" || key === "ArrowRight")
      return tiles[tiles.indexOf(tile) + (key === "ArrowRight" ? 1 : -1)]?.focus();
    const middle = (node: Element) => {
      const b = node.getBoundingClientRect();
      return [b.left + b.width / 2, b.top + b.height / 2, b.height];
    };
    const [x, y, height] = middle(tile),
      way = key === "ArrowDown" ? 1 : -1;
    let best = null,
      least = Infinity;
    for (const other of tiles) {
      const [u, v] = middle(other),
        down = way * (v - y);
      if (down < height / 2) continue;
      const far = down + 2 * Math.abs(u - x);
      if (far < least) [best, least] = [other, far];
    }
    best?.focus();
  }
}

// Button and list of the keys that this page handles.
const Keys = ({ keys: handled, missing }: { keys: string[]; missing: boolean }) => {
  const more = Object.entries(MORE).flatMap(([name, row]) => (handled.includes(name) ? [row] : [])),
    rows: Row[] = [...KEYS, ...more, [["?"], "these keys"]],
    dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <style>{STYLE}</style>
      <button class="keys" title="Keys (?)" onClick={() => dialog.current?.showModal()}>
        Keys <kbd>?</kbd>
      </button>
      <p class="gone" role="status" hidden={!missing}>
        Images are missing because the run or its data set was removed. Reload the page.
      </p>
      <dialog ref={dialog} aria-label="Keys">
        <h3>Keys</h3>
        {rows.map(([keys, words]) => (
          <div key={words}>
            <span>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </span>
            {words}
          </div>
        ))}
        <button onClick={() => dialog.current?.close()}>Close</button>
      </dialog>
    </>
  );
};

const STYLE = `
:host, div { font: 14px/1.4 var(--st-font, sans-serif); color: var(--st-text-color); }
button { font: inherit; font-size: 13px; color: var(--st-text-color); background: none; cursor: pointer;
  border: 1px solid rgb(128 128 128 / .35); border-radius: 8px; padding: 3px 10px; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
kbd { font: 600 12px/18px monospace; display: inline-block; min-width: 18px; text-align: center; padding: 0 4px; margin-right: 4px;
  border: 1px solid rgb(128 128 128 / .5); border-bottom-width: 2px; border-radius: 4px; }
.keys kbd { margin: 0; }
.gone { margin: 6px 0 0; color: var(--wrong-text); }
dialog { color: var(--st-text-color); background: var(--st-background-color); border: 1px solid rgb(128 128 128 / .4);
  border-radius: 12px; padding: 18px 22px; max-width: min(92vw, 420px); }
dialog::backdrop { background: rgb(0 0 0 / .4); }
dialog h3 { margin: 0 0 10px; font-size: 17px; }
dialog div { display: grid; grid-template-columns: 116px 1fr; padding: 4px 0; }
dialog button { margin-top: 12px; }
`;

const galleries: WeakMap<HTMLElement, Gallery> = new WeakMap();

export function render(component: Mounted<GalleryData>) {
  const root = component.parentElement;
  const gallery = galleries.get(root) ?? new Gallery(root);
  galleries.set(root, gallery);
  gallery.show(component);
}

export function unmount(root: HTMLElement) {
  galleries.get(root)?.end();
  galleries.delete(root);
}
