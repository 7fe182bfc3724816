// Frames of VP9 as a WebM file (Matroska, RFC 9559), each with its own time in ms.
import type { Encoded } from "../types.ts";
import type { Part } from "./bytes.ts";
import { joined, bigEndian } from "./bytes.ts";
import { CODES } from "./about.ts";

const NANOSECONDS = 1e6; // per tick of the file
const TRACK = 1,
  VIDEO = 1; // track type

// Return an element: its ID, its size, its content.
function element(id: number, ...content: Part[]) {
  const body = joined(content),
    width = Math.ceil(Math.log2(id + 1) / 8);
  return joined([bigEndian(width, id), [1], bigEndian(7, body.length), body]);
}
function float(value: number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return bytes;
}
const number = (id: number, value: number) => element(id, bigEndian(4, value));

function described(film: Encoded) {
  const { width, height, colours } = film,
    { primaries, transfer, matrix } = CODES;
  return [
    element(
      0x1549a966, // Info
      number(0x2ad7b1, NANOSECONDS), // TimestampScale
      element(0x4489, float(film.length)), // Duration
      element(0x4d80, "DML Lab"), // MuxingApp
      element(0x5741, "DML Lab"), // WritingApp
    ),
    element(
      0x1654ae6b, // Tracks
      element(
        0xae, // TrackEntry
        number(0xd7, TRACK), // TrackNumber
        number(0x73c5, TRACK), // TrackUID
        number(0x83, VIDEO), // TrackType
        element(0x86, "V_VP9"), // CodecID
        element(
          0xe0, // Video
          number(0xb0, width), // PixelWidth
          number(0xba, height), // PixelHeight
          element(
            0x55b0, // Colour
            number(0x55b1, matrix[colours?.matrix ?? ""] ?? CODES.unknown),
            number(0x55b9, colours?.fullRange ? 2 : 1),
            number(0x55ba, transfer[colours?.transfer ?? ""] ?? CODES.unknown),
            number(0x55bb, primaries[colours?.primaries ?? ""] ?? CODES.unknown),
          ),
        ),
      ),
    ),
  ];
}

export function webm(film: Encoded) {
  const groups: { ms: number; blocks: Uint8Array[] }[] = [];
  for (const { ms, key, data } of film.pictures) {
    if (key) groups.push({ ms, blocks: [] }); // every cluster starts with a key frame
    const group = groups[groups.length - 1];
    group.blocks.push(
      // SimpleBlock
      element(0xa3, [0x80 | TRACK], bigEndian(2, ms - group.ms), [key ? 0x80 : 0], data),
    );
  }
  const head = described(film),
    clusters = groups.map(({ ms, blocks }) => element(0x1f43b675, number(0xe7, ms), ...blocks));
  // Return the cue points for seeking. The size of their block does not depend on the positions.
  const places = (first: number) => {
    let at = first;
    const points = groups.map(({ ms }, i) => {
      const place = element(0xb7, number(0xf7, TRACK), number(0xf1, at)); // CueTrackPositions
      at += clusters[i].length;
      return element(0xbb, number(0xb3, ms), place); // CuePoint
    });
    return element(0x1c53bb6b, ...points);
  };
  const before = joined(head).length + places(0).length;
  return joined([
    element(
      0x1a45dfa3, // EBML
      number(0x4286, 1),
      number(0x42f7, 1),
      number(0x42f2, 4), // maximal ID length
      number(0x42f3, 8), // maximal size length
      element(0x4282, "webm"),
      number(0x4287, 4),
      number(0x4285, 2),
    ),
    element(0x18538067, ...head, places(before), ...clusters), // Segment
  ]);
}
