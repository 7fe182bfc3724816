// Pairs of samples on both sides of the threshold.
import type { Kind, Pair, Pairs } from "./types.ts";

// Return the position of the first pair that reaches threshold k.
// bins: ascending
export function firstAbove(bins: ArrayLike<number>, k: number) {
  let low = 0,
    high = bins.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bins[middle] <= k) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Return pairs of a kind below or above threshold k: those nearest to it first, or farthest first.
// Pairs of samples that were not shown yet have priority, so that one outlier does not fill the
// group.
export function group(
  pairs: Pairs,
  kind: Kind,
  k: number,
  above: boolean,
  nearest: boolean,
  most: number,
): Pair[] {
  const bins = pairs[`${kind}_bin`],
    border = firstAbove(bins, k),
    [start, end] = above ? [border, bins.length] : [0, border],
    first = pairs[`${kind}_first`],
    second = pairs[`${kind}_second`],
    candidates = Array.from({ length: Math.min(pairs.keep, end - start) }, (_, i) =>
      above === nearest ? start + i : end - 1 - i,
    ),
    seen = new Set(),
    fresh = candidates.filter((at) => {
      if (seen.has(first[at]) || seen.has(second[at])) return false;
      seen.add(first[at]).add(second[at]);
      return true;
    }),
    rest = candidates.filter((at) => !fresh.includes(at)),
    chosen = new Set([...fresh, ...rest].slice(0, most)),
    label = pairs[`${kind}_label`];
  return candidates
    .filter((at) => chosen.has(at))
    .map((at) => ({
      kind,
      samples: [first[at], second[at]],
      names: [pairs.class_names[label[at]], pairs.class_names[label[bins.length + at]]],
      value: pairs[`${kind}_value`][at],
      pages: pairs[`${kind}_opened`][at],
    }));
}
