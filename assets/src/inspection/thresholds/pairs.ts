// Pairs of samples on both sides of the threshold.
import type { Kind, Pair, Pairs, ThresholdData } from "./types.ts";
import { el } from "../../kit/dom.ts";

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

// Return both images of a pair with its similarity and its links. Images and links need no further
// data, so a pair can be opened in a new tab, too.
export function figure(
  { kind, samples, names, value, pages }: Pair,
  data: ThresholdData,
  open: (page: string, samples: Record<string, number>) => void,
) {
  const link = (page: string, text: string, of: Record<string, number>) => {
    const query = new URLSearchParams(data.parameters);
    for (const [name, sample] of Object.entries(of)) query.set(name, String(sample));
    return el(
      "a",
      {
        href: `${page}?${query}`,
        onclick: (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault(); // following the link would load the whole app again
          open(page, of);
        },
      },
      text,
    );
  };
  const [first, second] = samples,
    image = (sample: number, name: string) =>
      el(
        "figure",
        {},
        el("img", {
          src: `${data.images}${sample}?large=1`,
          alt: `${name}, sample ${sample}`,
          draggable: "false",
        }),
        ...(kind === "different" ? [el("figcaption", { title: name }, name)] : []),
      );
  return el(
    "li",
    { class: `pair ${kind}` },
    el("div", { class: "both" }, ...samples.map((sample, i) => image(sample, names[i]))),
    el(
      "p",
      {},
      el("b", {}, value.toFixed(3).replace("-", "−")),
      ...(kind === "same" ? [el("span", { class: "name", title: names[0] }, names[0])] : []),
      el(
        "span",
        { class: "links" },
        ...(pages & 2
          ? [
              link("failures", "Forces", {
                query: first,
                [kind === "same" ? "right" : "wrong"]: second,
              }),
            ]
          : []),
        ...(pages & 1 ? [link("explore", "On the map", { point: first, query: second })] : []),
      ),
    ),
  );
}
