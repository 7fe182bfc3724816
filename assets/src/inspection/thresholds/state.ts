// State of the Thresholds page: display settings, the threshold, and the pairs that are loaded. All
// of it is signals: what follows the threshold changes without a rendering of the page.
import { createRef } from "preact";
import { computed, signal } from "@preact/signals";
import type { SetState, Theme } from "../../kit/types.ts";
import type { Curves, Kind, Look, Pairs, Recommended, Side, ThresholdData } from "./types.ts";
import { closest, density, equalErrors } from "./curves.ts";

const RECOMMENDED = 2, // value of look.t
  REST = 400, // ms until a gesture with keys counts as ended
  SETTLE = 120; // ms between two changes of lists and images during a drag

// Functions that reach Python.
export interface Host {
  setState: SetState;
  trigger: SetState;
  fetchFile(name: string): Promise<unknown>;
}

export class ThresholdState {
  readonly curves: Curves;
  readonly densities: Partial<Record<Side, Record<Kind, Float64Array>>> = {};
  readonly sides: Side[];
  readonly data = signal({} as ThresholdData);
  readonly look = signal({} as Look);
  readonly theme = signal<Theme>("light");
  readonly k = signal(0); // index of the threshold
  readonly settled = signal(0); // index for which lists and images are shown
  readonly pairs = signal<Partial<Record<Side, Pairs | Error>>>({});
  readonly recommended = computed<Recommended | undefined>(() => {
    const all = this.curves.recommended;
    return (
      all.find(({ promised }) => String(promised) === this.look.value.fmr) ?? all[all.length - 1]
    );
  });
  readonly handle = createRef<HTMLDivElement>();
  known: string; // display settings that Python knows
  private loading = new Set<Side>();
  private at = 0; // index of the threshold, shown from the next frame on
  private frame: number | undefined;
  private waiting: ReturnType<typeof setTimeout> | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private readonly host: Host;

  constructor(curves: Curves, data: ThresholdData, host: Host) {
    this.curves = curves;
    this.host = host;
    this.sides = (["unseen", "seen"] as Side[]).filter((side) => curves.sides[side]);
    for (const side of this.sides)
      this.densities[side] = {
        same: density(curves, side, "same"),
        different: density(curves, side, "different"),
      };
    this.known = JSON.stringify(data.look);
    this.show(data, data.look);
  }

  // Take over data of Python, and display settings if they changed there.
  update(data: ThresholdData) {
    const text = JSON.stringify(data.look);
    this.show(data, text === this.known ? this.look.value : data.look);
    this.known = text;
  }

  private show(data: ThresholdData, look: Look) {
    this.data.value = data;
    this.look.value = { ...look, side: this.curves.sides[look.side] ? look.side : "unseen" };
    const { t } = this.look.value,
      start = t === RECOMMENDED ? this.recommended.value?.threshold : t;
    this.at = closest(this.curves.thresholds, start ?? equalErrors(this.curves));
    this.k.value = this.at;
    this.settle();
  }

  // Change display settings.
  choose(change: Partial<Look>) {
    this.show(this.data.value, { ...this.look.value, ...change });
    this.report();
  }

  // Move the threshold to the recommended one for a promised rate.
  recommend(fmr: string) {
    this.choose({ fmr, t: RECOMMENDED });
  }

  // Move the threshold to an index, within a gesture that `rest` ends.
  move(k: number) {
    const { thresholds } = this.curves;
    this.at = Math.min(Math.max(k, 0), thresholds.length - 1);
    this.look.peek().t = Number(thresholds[this.at].toFixed(5)); // reported at rest
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.k.value = this.at;
    });
    this.waiting ??= setTimeout(() => this.settle(), SETTLE);
  }

  // Move the threshold by a key.
  press(event: KeyboardEvent) {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event,
      far = shiftKey ? 10 : 1,
      to: Record<string, number> = {
        ArrowLeft: this.at - far,
        ArrowDown: this.at - far,
        ArrowRight: this.at + far,
        ArrowUp: this.at + far,
        PageDown: this.at - 20,
        PageUp: this.at + 20,
        Home: 0,
        End: Infinity,
      };
    if (!(key in to) || ctrlKey || metaKey || altKey) return;
    event.preventDefault();
    this.move(to[key]);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
  }

  // End a gesture.
  rest() {
    this.settle();
    this.report();
  }

  // Load the pairs of a side, once; after an error again.
  async load(side: Side) {
    const loaded = this.pairs.peek()[side];
    if (this.loading.has(side) || (loaded && !(loaded instanceof Error))) return;
    this.loading.add(side);
    const answer = await this.host.fetchFile(`pairs-${side}`).catch((error) => error);
    this.loading.delete(side);
    this.pairs.value = { ...this.pairs.value, [side]: answer as Pairs | Error };
  }

  // Show a page of a pair or of a class within the session.
  open(page: string, parameters: Record<string, number>) {
    this.host.trigger("open", { page, ...parameters });
  }

  compute() {
    this.host.trigger("compute", true);
  }

  close() {
    clearTimeout(this.waiting);
    clearTimeout(this.resting);
    if (this.frame) cancelAnimationFrame(this.frame);
  }

  private settle() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.settled.value = this.at;
  }

  // Report the display settings to Python, which writes them into the address.
  private report() {
    clearTimeout(this.resting);
    this.known = JSON.stringify(this.look.value);
    this.host.setState("look", { ...this.look.value });
  }
}
