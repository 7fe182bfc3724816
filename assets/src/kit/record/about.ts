// Metadata of frames that all containers write.
import type { Encoded } from "../types.ts";

// Codes of ITU-T H.273 for the browser's names of colour spaces.
export const CODES: Record<"primaries" | "transfer" | "matrix", Record<string, number>> & {
  unknown: number;
} = {
  primaries: { bt709: 1, bt470bg: 5, smpte170m: 6, bt2020: 9, smpte432: 12 },
  transfer: { bt709: 1, smpte170m: 6, linear: 8, "iec61966-2-1": 13, pq: 16, hlg: 18 },
  matrix: { rgb: 0, bt709: 1, bt470bg: 5, smpte170m: 6, "bt2020-ncl": 9 },
  unknown: 2,
};

// Return how long each frame is shown, in ms.
export const untilNext = ({ pictures, length }: Encoded) =>
  pictures.map(({ ms }, i) => (pictures[i + 1]?.ms ?? length) - ms);
