// Figure of a page over the whole window: larger type, the parts that the speaker chose, a caption,
// and notes in a separate window. The page is unchanged: nothing is moved or duplicated, everything
// else is only hidden.
import { asset } from "../address.ts";
import type { Presentable, Presentation } from "../types.ts";
import { render } from "preact";
import { el, styled } from "../dom.ts";
import { captionOf, lossOf } from "./caption.ts";
import { partsOf, selectorsOf } from "./parts.ts";
import { Notes } from "./notes.tsx";

const LOOK = 300; // ms between two updates of caption and notes
const SMALLEST = 0.62; // smallest scale of the type of a one-line caption

export class Stage {
  readonly app: Presentable;
  about: Presentation;
  private readonly left: () => void;
  private readonly whole: HTMLElement;
  private readonly root: ShadowRoot;
  private readonly sheet = new CSSStyleSheet();
  private readonly notes = new Notes(() => this.notesContent());
  private readonly bar = el("div", {
    class: "present-bar",
    role: "group",
    "aria-label": "lecture",
  });
  private readonly cell = el("div", { class: "present-cell", "aria-hidden": "true" });
  private readonly observer = new ResizeObserver(() => this.room());
  private readonly asleep: HTMLElement[] = []; // elements below the figure, inert meanwhile
  private names: string[];
  private choosing = false; // the list of parts is open
  private message = ""; // replaces the caption
  private focused: HTMLElement | null | undefined;
  private looking: ReturnType<typeof setInterval> | undefined;
  private over = false;

  // left: called once the presentation ends
  constructor(app: Presentable, about: Presentation, left: () => void) {
    this.app = app;
    this.about = about;
    this.left = left;
    this.whole = app.whole;
    this.root = this.whole.getRootNode() as ShadowRoot;
    const asked = new URLSearchParams(location.search).get("controls");
    this.names = asked === null ? about.controls : asked.slice(0, 500).split(",").filter(Boolean);
  }

  async enter() {
    const { whole, root } = this;
    const sheet = asset("kit/present/stage.css");
    if (!root.querySelector(`link[href="${sheet}"]`)) await styled(root, sheet);
    if (this.over) return;
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, this.sheet];
    this.focused = root.activeElement as HTMLElement | null;
    whole.append(this.cell, this.bar);
    whole.classList.add("presenting");
    whole.dataset.picture = this.about.picture;
    whole.popover = "manual";
    whole.showPopover();
    this.observer.observe(this.cell);
    this.choose(this.names);
    this.makeRestInert();
    const picture: HTMLElement | null = whole.querySelector(
      ".frame[tabindex], .frame [tabindex='0']",
    );
    picture?.focus({ preventScroll: true });
    this.look();
    this.looking = setInterval(() => this.look(), LOOK);
  }

  leave() {
    this.write(null);
    this.down();
  }

  down() {
    const { whole, root } = this;
    this.over = true;
    this.left();
    if (!whole.classList.contains("presenting")) return;
    clearInterval(this.looking);
    this.observer.disconnect();
    this.notes.close();
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    for (const element of this.asleep) element.inert = false;
    whole.hidePopover();
    whole.removeAttribute("popover");
    whole.classList.remove("presenting");
    delete whole.dataset.picture;
    this.bar.remove();
    this.cell.remove();
    root.adoptedStyleSheets = root.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet);
    this.app.resize?.();
    this.focused?.focus({ preventScroll: true });
  }

  // Make everything below the figure inert, for Tab and for screen readers.
  private makeRestInert() {
    let node: Node | null = this.whole;
    while (node && node !== document.body) {
      const parent = (
        node.parentNode instanceof ShadowRoot ? node.parentNode.host : node.parentNode
      ) as Node | null;
      for (const other of node.parentNode?.children ?? [])
        if (other !== node && other instanceof HTMLElement && !other.inert) {
          other.inert = true;
          this.asleep.push(other);
        }
      node = parent;
    }
  }

  key(event: KeyboardEvent) {
    if (event.key === "Escape") {
      if (this.root.querySelector("dialog[open]")) return;
      if (this.choosing) {
        this.choosing = false;
        this.look();
        this.bar.querySelector("summary")?.focus();
      } else this.leave();
    } else if (event.key === "s") this.openNotes();
    else if (event.key === "f") this.toggleFullscreen();
    else return;
    event.preventDefault();
  }

  private toggleFullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen().catch(() => {});
  }

  private openNotes() {
    const opened = this.notes.open(this.about.title);
    this.message = opened
      ? ""
      : "The browser blocked the notes window. Allow pop-ups for this page.";
    this.look();
  }

  // ---- parts next to the figure
  private choose(names: string[]) {
    this.names = names;
    const views = this.about.picture === "views" ? [".views"] : [];
    const kept = `:is(${[".frame", ".present-bar", ".present-cell", ...views, ...selectorsOf(names)].join(", ")})`,
      side = ":is(.panel, .ranks, .middle)";
    this.sheet.replaceSync(`
      .presenting :not(${kept}, ${kept} *, :has(${kept}), style, link) { display: none !important; }
      .presenting :has(${kept}):not(${kept}, ${kept} *, ${side}, ${side} *) { display: contents !important; }
    `);
    this.write(names);
  }

  // Write the chosen parts into the address; null removes the presentation parameters.
  private write(names: string[] | null) {
    const address = new URLSearchParams(location.search);
    address.delete("present");
    address.delete("controls");
    if (names) {
      address.set("present", "1");
      if (names.join() !== this.about.controls.join()) address.set("controls", names.join());
    }
    const text = address.toString().replaceAll("%2C", ",");
    history.replaceState(history.state, "", location.pathname + (text && `?${text}`));
  }

  // Measure the largest square that fits.
  private room() {
    const { clientWidth: width, clientHeight: height } = this.cell;
    this.whole.style.setProperty("--cell-width", `${width}px`);
    this.whole.style.setProperty("--cell-height", `${height}px`);
    this.line();
    this.app.resize?.();
  }

  // ---- caption and notes
  private look() {
    render(this.content(), this.bar);
    this.line();
    this.notes.show();
  }

  private content() {
    const { whole, about, names } = this,
      toggle = (name: string) =>
        this.choose(
          names.includes(name) ? names.filter((each) => each !== name) : [...names, name],
        );
    return (
      <>
        <p class="present-caption">{this.message || captionOf(whole, about)}</p>
        <div class="present-tools">
          <details
            class="present-chooser"
            open={this.choosing}
            onToggle={(event) => {
              this.choosing = event.currentTarget.open;
              this.look();
            }}
          >
            <summary title="what is shown next to the figure">Controls</summary>
            <div class="present-list">
              {this.choosing &&
                partsOf(whole).map(({ name, title }) => (
                  <label key={name}>
                    <input
                      type="checkbox"
                      checked={names.includes(name)}
                      onChange={() => toggle(name)}
                    />
                    {title}
                  </label>
                ))}
            </div>
          </details>
          <button title="Speaker notes in a second window (S)" onClick={() => this.openNotes()}>
            Notes
          </button>
          <button title="Full screen (F)" onClick={() => this.toggleFullscreen()}>
            Full screen
          </button>
          <button title="Back to the page (Esc)" onClick={() => this.leave()}>
            Leave
          </button>
        </div>
      </>
    );
  }

  // Shrink the type of a long caption so that it fits on one line.
  private line() {
    const caption = this.bar.querySelector<HTMLElement>(".present-caption");
    if (!caption) return;
    caption.style.fontSize = "";
    const share = caption.clientWidth / Math.max(caption.scrollWidth, 1);
    if (share < 1) caption.style.fontSize = `${Math.max(share, SMALLEST) * 100}%`;
  }

  // Return what the speaker's window shows: the notes and the state of the figure.
  private notesContent() {
    const { whole, about } = this,
      text = (node: Element | null) => node?.textContent?.trim() ?? "";
    const shown: [string, string][] = [];
    const loss = lossOf(whole);
    if (loss) shown.push(["loss", loss]);
    const pressed = whole.querySelector(
      '[data-preset][aria-pressed="true"], .lessons [aria-pressed="true"]',
    );
    if (pressed) shown.push(["preset", text(pressed)]);
    for (const row of whole.querySelectorAll(".control")) {
      const box = row.querySelector("input[type=number], select");
      if (box instanceof HTMLInputElement || box instanceof HTMLSelectElement)
        shown.push([
          box.getAttribute("aria-label")?.replace(/ value$/, "") ?? "",
          box.value || "∞",
        ]);
    }
    for (const clock of whole.querySelectorAll(".transport output, .player output"))
      if (text(clock)) shown.push(["time", text(clock)]);
    for (const value of whole.querySelectorAll(".readout [data-readout]"))
      shown.push([value.getAttribute("data-readout") ?? "", text(value)]);
    return { title: about.title, caption: captionOf(whole, about), notes: about.notes, shown };
  }
}
