// Frames of H.264 as an MP4 file (ISO/IEC 14496-12, 14496-15), each with its own time in ms.
import type { Encoded } from "../types.ts";
import type { Part } from "./bytes.ts";
import { joined, bigEndian } from "./bytes.ts";
import { CODES, untilNext } from "./about.ts";

const TICKS = 1000, // per second
  DPI = 0x480000, // 72, the usual value
  UPRIGHT = bigEndian(4, 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000),
  ENGLISH = 0x55c4;

// name: four letters
function box(name: string, ...content: Part[]) {
  const body = joined(content);
  return joined([bigEndian(4, body.length + 8), name, body]);
}
// Return a box with version 0 and flags.
const full = (name: string, flags: number, ...content: Part[]) =>
  box(name, bigEndian(4, flags), ...content);

// Return the sample table: format of the frames, their offsets in the file and durations.
// start: offset of the first frame
function table(film: Encoded, start: number) {
  const { width, height, pictures, description, colours } = film,
    { primaries, transfer, matrix } = CODES,
    keys = pictures.flatMap(({ key }, i) => (key ? [i + 1] : []));
  const drawn = box(
    "avc1",
    bigEndian(4, 0),
    bigEndian(2, 0, 1),
    bigEndian(4, 0, 0, 0, 0),
    bigEndian(2, width, height),
    bigEndian(4, DPI, DPI, 0),
    bigEndian(2, 1), // frames per sample
    bigEndian(4, 0, 0, 0, 0, 0, 0, 0, 0), // name of the compressor
    bigEndian(2, 24, 0xffff), // bits per pixel
    box("avcC", description ?? []),
    box(
      "colr",
      "nclx",
      bigEndian(2, primaries[colours?.primaries ?? ""] ?? CODES.unknown),
      bigEndian(2, transfer[colours?.transfer ?? ""] ?? CODES.unknown),
      bigEndian(2, matrix[colours?.matrix ?? ""] ?? CODES.unknown),
      [colours?.fullRange ? 0x80 : 0],
    ),
  );
  return box(
    "stbl",
    full("stsd", 0, bigEndian(4, 1), drawn),
    full("stts", 0, bigEndian(4, pictures.length, ...untilNext(film).flatMap((ms) => [1, ms]))),
    full("stss", 0, bigEndian(4, keys.length, ...keys)),
    full("stsc", 0, bigEndian(4, 1, 1, pictures.length, 1)), // all samples in one chunk
    full("stsz", 0, bigEndian(4, 0, pictures.length, ...pictures.map(({ data }) => data.length))),
    full("stco", 0, bigEndian(4, 1, start)),
  );
}

function described(film: Encoded, start: number) {
  const { width, height, length } = film;
  return box(
    "moov",
    full(
      "mvhd",
      0,
      bigEndian(4, 0, 0, TICKS, length, 0x10000), // normal playback rate
      bigEndian(2, 0x100, 0),
      bigEndian(4, 0, 0),
      UPRIGHT,
      bigEndian(4, 0, 0, 0, 0, 0, 0),
      bigEndian(4, 2), // next track ID
    ),
    box(
      "trak",
      full(
        "tkhd",
        3, // track enabled and used in the movie
        bigEndian(4, 0, 0, 1, 0, length, 0, 0),
        bigEndian(2, 0, 0, 0, 0),
        UPRIGHT,
        bigEndian(4, width * 0x10000, height * 0x10000),
      ),
      box(
        "mdia",
        full("mdhd", 0, bigEndian(4, 0, 0, TICKS, length), bigEndian(2, ENGLISH, 0)),
        full("hdlr", 0, bigEndian(4, 0), "vide", bigEndian(4, 0, 0, 0), "DML Lab\0"),
        box(
          "minf",
          full("vmhd", 1, bigEndian(2, 0, 0, 0, 0)),
          box("dinf", full("dref", 0, bigEndian(4, 1), full("url ", 1))), // data in this file
          table(film, start),
        ),
      ),
    ),
  );
}

export function mp4(film: Encoded) {
  const kind = box("ftyp", "isom", bigEndian(4, 0x200), "isomiso2avc1mp41"),
    data = box("mdat", ...film.pictures.map((picture) => picture.data)),
    start = kind.length + described(film, 0).length + 8;
  return joined([kind, described(film, start), data]);
}
