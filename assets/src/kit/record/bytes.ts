// Integers and text as bytes of a file.
// bytes, or a string with one byte per character
export type Part = Uint8Array | number[] | string;

// Return integers as consecutive big-endian bytes.
// width: bytes per integer
// values: not negative
export const bigEndian = (width: number, ...values: number[]) =>
  Uint8Array.from(
    values.flatMap((value) =>
      Array.from({ length: width }, (_, i) => Math.floor(value / 256 ** (width - 1 - i)) % 256),
    ),
  );

export function joined(parts: Part[]) {
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
