// Changes of a state by the visitor: settings that act from the step shown, and other states.
import type { Kinds, State } from "./types.ts";
import type { Player } from "./player.ts";
import { still } from "../dom.ts";

const SOON = 160; // ms until a slider or a held key counts as released

export class Changes<K extends Kinds> {
  now: K["settings"]; // of the panel
  private readonly player: Player<K>;
  private inEffect = ""; // settings at the step shown, as text
  private pending: ReturnType<typeof setTimeout> | undefined;

  constructor(player: Player<K>) {
    this.player = player;
  }

  // Return the settings in effect at a step.
  settingsAt(step: number): K["settings"] {
    const { figure, clock } = this.player;
    return figure.settingsAt?.(step) ?? settingsOf(clock.state, figure.settings ?? [], step);
  }

  // Take the settings of the panel from the step shown.
  read() {
    this.now = structuredClone(this.settingsAt(this.player.clock.at));
    this.inEffect = JSON.stringify(this.now);
  }

  // Render the panel if other settings are in effect at the step shown, and none is being changed.
  follow() {
    const { player } = this;
    if (!this.pending && JSON.stringify(this.settingsAt(player.clock.at)) !== this.inEffect)
      player.panel();
  }

  // Apply a slider or a held key shortly after it comes to rest.
  commitSoon() {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.commit(), SOON);
  }

  // Apply the settings of the panel from the step shown; drop the steps after it.
  commit() {
    const { clock, figure } = this.player;
    this.close();
    const now = structuredClone(this.now),
      changed = withSettings(clock.state, figure.settings ?? [], clock.at, now);
    if (changed) this.change(changed);
  }

  // Switch to a state that differs from the current one only from the step `from` on.
  change(state: K["state"], from = this.player.clock.at + 1, played = this.player.clock.playing) {
    const { player } = this,
      { clock, playback, view } = player,
      { changes } = player.options.limits,
      full = state.changes.length > changes;
    view.pressed.value = null;
    if (full) this.load({ ...state, ...structuredClone(this.now), changes: [] });
    else {
      clock.fork(state, from);
      player.panel();
      clock.ask({ rest: true });
    }
    if (played) playback.play();
    else view.playing.value = false;
    player.tell(
      full
        ? `A link stores at most ${changes} changes. Training restarted with these settings.`
        : "",
    );
  }

  // Start again with other fields of the state and the settings of the panel.
  restart(change: Partial<K["state"]>) {
    const { clock, figure } = this.player,
      fields = figure.restarted?.(change) ?? change,
      now = structuredClone(this.now);
    this.loadAndPlay({ ...structuredClone(clock.state), ...now, changes: [], ...fields });
  }

  // Switch to another state, and play on.
  loadAndPlay(state: K["state"], goal = 0) {
    const { clock, playback, view } = this.player,
      played = clock.playing;
    view.pressed.value = null;
    this.load(state, goal);
    if (played) playback.play();
  }

  // Switch to another state, at the step `goal`.
  load(state: K["state"], goal = 0) {
    const { player } = this,
      { clock, playback } = player;
    playback.pause("");
    playback.release();
    clock.renew(state, goal);
    player.idle = false;
    player.figure.onStateReplaced?.();
    player.panel();
    clock.requestFirst();
  }

  // Switch to a preset, and play it.
  preset(index: number) {
    const { options, playback, view } = this.player;
    this.load(options.presets[index].state);
    view.pressed.value = index;
    if (!still()) playback.play();
  }

  // Forget what `commitSoon` would apply.
  close() {
    clearTimeout(this.pending);
    this.pending = undefined;
  }
}

// Return the settings of these names in effect at a step, which the last change up to it has made.
function settingsOf(state: State, names: readonly string[], step: number): Record<string, unknown> {
  const source: Record<string, any> = state.changes.findLast((c) => c.at <= step) ?? state;
  return Object.fromEntries(names.map((name) => [name, source[name]]));
}

// Return the state with other settings from a step on; later changes are dropped. Null if nothing
// changes.
function withSettings<S extends State>(
  state: S,
  names: readonly string[],
  at: number,
  now: object,
) {
  const isSame = (step: number) =>
    JSON.stringify(settingsOf(state, names, step)) === JSON.stringify(now);
  if (isSame(at) && state.changes.every((c) => c.at <= at)) return null;
  if (at === 0) return { ...state, ...now, changes: [] };
  const before = state.changes.filter((c) => c.at < at);
  return { ...state, changes: isSame(at - 1) ? before : [...before, { at, ...now }] };
}
