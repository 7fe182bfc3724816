// Integers and text as bytes of a file.
/** @typedef {Uint8Array | number[] | string} Part bytes, or a string with one byte per character */

/**
 * Return integers as consecutive big-endian bytes.
 *
 * @param {number} width bytes per integer
 * @param {...number} values not negative
 */
export const bigEndian = (width, ...values) =>
  Uint8Array.from(
    values.flatMap((value) =>
      Array.from({ length: width }, (_, i) => Math.floor(value / 256 ** (width - 1 - i)) % 256),
    ),
  );

/** @param {Part[]} parts */
export function joined(parts) {
  const all = parts.map((part) =>
      typeof part === "string" ? Uint8Array.from(part, (c) => c.charCodeAt(0)) : part,
    ),
    out = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of all) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
