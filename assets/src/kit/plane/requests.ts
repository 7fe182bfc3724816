// Requests of the plane to Python and the order of their answers.
import type { Data, Place } from "../types.ts";
import type { Batch, Field, FieldRequest, HoverAnswer, Scene } from "./types.ts";
import { rounded } from "../figure/view.ts";
import { Link, decode, firstId, socketAddress } from "../socket.ts";

const FINE = 81, // nodes per side during a gesture
  COARSE = 41, // once answers take more than SLOW ms
  SLOW = 24,
  RESTING = 201, // nodes per side at rest
  MODEST = 101; // once answers are slow

/** Kind of request: a figure during a gesture or at its end; `first`: before anything is shown. */
export type Detail = "first" | "moving" | "resting";

/** Parts of the page that requests use. */
export interface Asking {
  get(): {
    data: Data & { grid: number | null };
    scene: Scene;
    batch?: Batch; // of which margins are shown
  };
  extra(): object; // further fields of each request
  ask(request: FieldRequest): void; // where no socket opens
  isStale(answer: Field): boolean; // not to be shown
  receive(answer: Field): void;
  receiveHover(answer: HoverAnswer): void;
}

export class Requests {
  readonly link: Link<FieldRequest>;
  sent = firstId(); // number of the last request
  answered = this.sent; // number of the last answer
  private scale: number | null = null; // of colours and arrows; fixed during a gesture
  private reference: number | null = null;
  private trip = 0; // ms until an answer arrives, averaged
  private readonly times = new Map<number, number>(); // when requests were sent
  private readonly page: Asking;

  constructor(page: Asking, route: string) {
    this.page = page;
    this.link = new Link(
      socketAddress(page.get().data, route),
      (buffer) => this.receive(buffer),
      (request) => page.ask(request),
    );
  }

  /** Let the next answer choose the scale of colours, and unless `colours` that of arrows. */
  rescale(colours = false): void {
    this.scale = null;
    if (!colours) this.reference = null;
  }

  /** Request the figure of the scene. */
  send(detail: Detail): void {
    const { page, scale, reference } = this,
      { data, scene, batch } = page.get(),
      id = ++this.sent,
      settle = detail === "resting",
      slow = this.trip > SLOW,
      moving = detail === "first" ? FINE : (data.grid ?? (slow ? COARSE : FINE));
    this.times.set(id, performance.now());
    this.link.send({
      id,
      scene,
      n: settle ? (slow ? MODEST : RESTING) : moving,
      scale,
      reference,
      settle,
      ...(settle && batch ? { batch } : {}),
      ...page.extra(),
    });
  }

  /** Request the numbers at a place. */
  sendHover(place: Place): void {
    const { page } = this;
    this.link.send({
      id: this.sent,
      hover: place.map(rounded),
      scene: page.get().scene,
      ...page.extra(),
    });
  }

  /** Pass an answer to the page, unless a newer one has arrived. */
  receive(buffer: ArrayBuffer): void {
    const answer = decode<Field | HoverAnswer>(buffer);
    if (answer.hover) return this.page.receiveHover(answer as HoverAnswer);
    if (answer.id < this.answered || this.page.isStale(answer)) return undefined;
    const now = performance.now();
    this.trip = 0.8 * this.trip + 0.2 * (now - (this.times.get(answer.id) ?? now));
    for (const id of this.times.keys()) if (id <= answer.id) this.times.delete(id);
    this.answered = answer.id;
    [this.scale, this.reference] = [answer.scale, answer.reference];
    return this.page.receive(answer);
  }
}
