// Speaker's window: notes, time, and the audience's view. The window of the figure controls it; the
// figure needs only its content.
import { asset } from "../address.ts";
import { el, setText } from "../dom.ts";

export type Told = { title: string; caption: string; notes: string[]; shown: [string, string][] };

const OWN = "dml-notes"; // storage key for the browser's own notes, by page
const two = (n: number) => String(n).padStart(2, "0");

export class Notes {
  content: () => Told;
  title: HTMLHeadingElement;
  caption: HTMLParagraphElement;
  list: HTMLUListElement;
  running: HTMLOutputElement;
  clock: HTMLElement;
  shown: HTMLDListElement;
  own: HTMLTextAreaElement;
  restart: HTMLButtonElement;
  window: Window | null = null;
  began = Date.now();

  constructor(told: () => Told) {
    this.content = told;
    this.title = el("h1");
    this.caption = el("p", { class: "caption" });
    this.list = el("ul");
    this.running = el("output", { "aria-label": "time running" });
    this.clock = el("small");
    this.shown = el("dl");
    this.own = el("textarea", { "aria-label": "your own notes", placeholder: "Your own notes" });
    this.own.addEventListener("input", () => localStorage.setItem(this.key, this.own.value));
    this.restart = el("button", { onclick: () => this.restartClock() }, "From 0:00");
  }

  get key() {
    return `${OWN}:${location.pathname}`;
  }

  // Open the window, or focus the open one; return true if there is a window.
  open(title: string) {
    if (this.window && !this.window.closed) {
      this.window.focus();
      return true;
    }
    const other = window.open("", "dml-lab-notes", "popup,width=760,height=820");
    if (!other) return false;
    this.window = other;
    const { document: page } = other;
    page.title = `Notes: ${title}`;
    page.documentElement.lang = "en";
    this.own.value = localStorage.getItem(this.key) ?? "";
    page.head.replaceChildren(
      el("link", { rel: "stylesheet", href: asset("kit/present/notes.css") }),
    );
    page.body.replaceChildren(
      el("header", {}, this.running, this.restart, this.clock),
      this.title,
      this.caption,
      this.list,
      this.own,
      el("h2", {}, "What is shown"),
      this.shown,
    );
    page.body.className = "";
    this.show(this.content());
    return true;
  }

  restartClock() {
    this.began = Date.now();
    this.show(this.content());
  }

  show({ title, caption, notes, shown }: Told) {
    if (!this.window || this.window.closed) return;
    const seconds = Math.floor((Date.now() - this.began) / 1000),
      now = new Date();
    setText(this.running, `${Math.floor(seconds / 60)}:${two(seconds % 60)}`);
    setText(this.clock, `${two(now.getHours())}:${two(now.getMinutes())}`);
    setText(this.title, title);
    setText(this.caption, caption);
    if (this.list.textContent !== notes.join(""))
      this.list.replaceChildren(...notes.map((note) => el("li", {}, note)));
    if (this.shown.children.length !== 2 * shown.length)
      this.shown.replaceChildren(...shown.flatMap(() => [el("dt"), el("dd")]));
    shown.forEach(([name, value], i) => {
      setText(this.shown.children[2 * i], name);
      setText(this.shown.children[2 * i + 1], value);
    });
  }

  close() {
    this.window?.close();
    this.window = null;
  }
}
