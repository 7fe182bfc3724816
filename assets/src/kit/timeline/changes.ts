// Settings that change during playback: those in effect at a step, and a state with other ones.
import type { State } from "./types.ts";

// Return the settings of these names in effect at a step, which the last change up to it has made.
export function settingsOf<N>(state: State, names: string[], step: number): N {
  const source: Record<string, any> = state.changes.findLast((c) => c.at <= step) ?? state;
  return Object.fromEntries(names.map((name) => [name, source[name]])) as N;
}

// Return the state with other settings from a step on; later changes are dropped. Null if nothing
// changes.
export function withSettings<S extends State, N>(state: S, names: string[], at: number, now: N) {
  const isSame = (step: number) =>
    JSON.stringify(settingsOf(state, names, step)) === JSON.stringify(now);
  if (isSame(at) && state.changes.every((c) => c.at <= at)) return null;
  if (at === 0) return { ...state, ...now, changes: [] };
  const before = state.changes.filter((c) => c.at < at);
  return { ...state, changes: isSame(at - 1) ? before : [...before, { at, ...now }] };
}
