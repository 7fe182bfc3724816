// Prototypes page: local features in the plane, their cells, and how much of them the average of
// one image retains.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Plane, PrototypesData, PrototypesRequest, Shows, View } from "./types.ts";
import { save, show as number } from "../../kit/dom.ts";
import { mountPanel } from "../../kit/panel/panel.tsx";
import { defineSession, Session } from "../../kit/session.ts";
import { Story } from "../story/story.ts";
import { bitmap, patchesOf } from "./draw.ts";
import { Page } from "./page.tsx";
import { planeFigure } from "./plane.ts";

type PrototypesSession = Session<PrototypesData, PrototypesRequest, Plane>;
const WRITE = 150, // ms from an answer until the address is written
  ANNOUNCE = 400; // ms until screen readers hear of it
const MOVES: Record<string, [classes: number, images: number]> = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

export class Prototypes {
  readonly session: PrototypesSession;
  readonly view = signal({} as View);
  readonly shows = signal<Shows>({ features: true, patches: true, hulls: true, averages: true });
  readonly plane = signal<Plane>(); // of the last answer that brought one
  readonly one = signal<Plane>(); // last answer, perhaps without a plane
  readonly pointed = signal({ hover: -1, pointed: -1 }); // prototype and row under the pointer
  readonly notice = signal("");
  readonly live = signal("");
  readonly story: Story;
  readonly figure: ReturnType<typeof planeFigure>;
  patches: HTMLCanvasElement[] = [];
  pixels: HTMLCanvasElement;
  private seen: string | null = null; // key of the plane that is loaded
  private timers: Record<string, ReturnType<typeof setTimeout>> = {};

  constructor(session: PrototypesSession) {
    const { data, hidden } = session;
    this.session = session;
    this.view.value = data.view;
    this.story = new Story({ data, hidden }, "prototypes", { next: ["transport", "a gate"] });
    this.figure = planeFigure(this);
    mountPanel(session.whole, () => h(Page, { app: this }));
    this.ask();
  }

  // ---- requests and answers
  ask(change: Partial<View> = {}) {
    this.view.value = { ...this.view.value, ...change };
    this.session.send({ view: this.view.value, have: this.seen });
  }

  // Read the features of another source.
  setSource(source: string) {
    this.seen = null;
    this.say("Reading the images …");
    this.ask({ source, per_class: this.session.data.limits.per_class[1] });
  }

  onAnswer(answer: Plane) {
    const { session } = this,
      { error, image, view, verdict, next, pixels, shapes } = answer;
    this.say(error ? `${error}. Choose other local features in the panel.` : "");
    session.whole.classList.toggle("failed", Boolean(error));
    if (error) {
      this.seen = null;
      return;
    }
    if (answer.cells !== undefined) {
      this.seen = answer.key;
      this.patches = patchesOf(answer);
      this.plane.value = { ...answer, shown: view.shown };
    }
    this.pixels = bitmap(pixels, shapes.pixels[1], shapes.pixels[0]);
    this.one.value = answer;
    if (answer.id === session.last) {
      this.view.value = { ...view }; // as Python corrected it
      this.later("link", WRITE, () => session.setLink(answer.query, session.data.kept));
    }
    const whose = `image ${view.picture[1] + 1} of class ${image.name}`;
    this.story.tell(
      verdict,
      next,
      `This is ${whose}: each pixel shows the patch that lies there. Green is what lies away from the prototype that tells its class most.`,
    );
    this.later("tell", ANNOUNCE, () => {
      this.live.value = `${whose}: error ${number(image.error)}, mean distance ${number(image.mean_distance)}, delta ${number(image.radius)}`;
    });
    this.figure.invalidate();
  }

  onTheme() {
    this.figure.setTheme(this.session.theme.value);
  }

  onLinkFollowed({ view }: PrototypesData) {
    this.ask(view);
  }

  resize() {
    this.figure.resize();
  }

  close() {
    Object.values(this.timers).forEach(clearTimeout);
    this.figure.close();
  }

  // ---- gestures
  look(hover: number, pointed = -1) {
    const { value } = this.pointed;
    if (hover === value.hover && pointed === value.pointed) return;
    this.pointed.value = { hover, pointed };
    this.figure.invalidate();
  }

  // Choose an image by its class and its rank within the class.
  choose(classIndex: number, rank: number) {
    this.ask({ picture: [classIndex, rank] });
  }

  // Show or hide the hull of a class; the first one gives way where there are too many.
  toggle(classIndex: number) {
    const { shown } = this.view.value,
      most = this.session.data.limits.shown;
    if (!shown.includes(classIndex))
      this.ask({ shown: [...shown.slice(shown.length >= most ? 1 : 0), classIndex] });
    else if (shown.length > 1) this.ask({ shown: shown.filter((x) => x !== classIndex) });
  }

  // Choose another image by a key; `columns`: rows of images lie in this number of columns. Return
  // false for other keys.
  key(event: KeyboardEvent, columns = 0) {
    const plane = this.plane.value,
      [from, rank] = this.view.value.picture;
    let [classes, by] = MOVES[event.key] ?? [];
    if (!plane || classes === undefined) return false;
    event.preventDefault();
    if (columns && classes) [classes, by] = [0, classes * columns];
    const c = (from + classes + plane.classes.length) % plane.classes.length;
    this.choose(c, Math.min(Math.max(rank + by, 0), plane.counts[c] - 1));
    return true;
  }

  setShows(name: keyof Shows, on: boolean) {
    this.shows.value = { ...this.shows.value, [name]: on };
    this.figure.invalidate();
  }

  async savePng() {
    const { source, prototypes } = this.view.value;
    save(`prototypes-${source.replace(/\W/g, "-")}-${prototypes}.png`, await this.figure.png(1800));
  }

  private say(text: string) {
    this.notice.value = [text, this.session.slower].filter(Boolean).join(" ");
  }

  private later(name: string, after: number, act: () => void) {
    clearTimeout(this.timers[name]);
    this.timers[name] = setTimeout(act, after);
  }
}

export const { render, unmount } = defineSession(
  { api: "api/prototypes", styles: "pooling/prototypes/prototypes.css" },
  (session: PrototypesSession) => new Prototypes(session),
);
