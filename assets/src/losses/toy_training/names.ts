// Losses and sides in words.
import type { Options, Side } from "./types.ts";
import type { Hyper, Schema } from "../../kit/types.ts";
import { symbolParts, tidy } from "../../kit/dom.ts";

export const LETTERS = ["A", "B"];

// Return a loss with its parameters, as the sliders write them.
export function lossName({ losses }: Pick<Schema, "losses">, loss: string, hyper: Hyper) {
  const { title, controls } = losses[loss],
    given = controls.flatMap(({ name, symbol }) => {
      const value = hyper[name],
        text = typeof value === "number" ? tidy(value).replace("-", "−") : value;
      return value === null || value === undefined
        ? []
        : [`${symbolParts(symbol).join("")} = ${text}`];
    });
  return [title, ...given].join(", ");
}

// Return the loss of a side, its forces, and for images its pooling.
export function sideName(
  schema: Pick<Schema, "losses">,
  { poolings, gated }: Options,
  { loss, hyper, moves, pooling, mu, epsilon }: Side,
  images: boolean,
) {
  const gate = gated.includes(pooling) ? `, μ = ${tidy(mu)}, ε = ${tidy(epsilon)}` : "",
    pooled = images ? `; ${poolings[pooling].title}${gate}` : "";
  return `${lossName(schema, loss, hyper)}${moves === "both" ? "" : `, ${moves} only`}${pooled}`;
}
