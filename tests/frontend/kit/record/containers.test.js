import assert from "node:assert/strict";
import { test } from "node:test";
import { joined } from "../../../../assets/src/kit/record/bytes.ts";
import { mp4 } from "../../../../assets/src/kit/record/mp4.ts";
import { webm } from "../../../../assets/src/kit/record/webm.ts";
import { zip } from "../../../../assets/src/kit/record/zip.ts";

const picture = (
  /** @type {number} */ ms,
  /** @type {boolean} */ key,
  /** @type {number[]} */ data,
) => ({
  ms,
  key,
  data: Uint8Array.from(data),
});
const film = {
  width: 640,
  height: 360,
  length: 130,
  pictures: [picture(0, true, [1, 2, 3]), picture(40, false, [4]), picture(90, true, [5, 6])],
  description: Uint8Array.from([9, 9]),
};

/** @param {Uint8Array} file */
const view = (file) => new DataView(file.buffer, file.byteOffset, file.length);
/** @param {Uint8Array} bytes */
const text = (bytes) => String.fromCharCode(...bytes);

/**
 * Return the boxes of a part of an MP4 file by name, each with its content.
 *
 * @param {Uint8Array} part
 * @returns {Record<string, Uint8Array>}
 */
function boxes(part) {
  if (!part.length) return {};
  const size = view(part).getUint32(0);
  assert.ok(size >= 8 && size <= part.length, `a box of ${size} bytes in ${part.length}`);
  return { [text(part.subarray(4, 8))]: part.subarray(8, size), ...boxes(part.subarray(size)) };
}

test("an MP4 tells where each picture lies and how long it is shown", () => {
  const file = mp4(film),
    top = boxes(file),
    media = boxes(boxes(boxes(top.moov).trak).mdia),
    table = boxes(boxes(media.minf).stbl),
    numbers = (/** @type {string} */ name) =>
      Array.from({ length: table[name].length / 4 }, (_, i) => view(table[name]).getUint32(4 * i));
  assert.deepEqual(Object.keys(top), ["ftyp", "moov", "mdat"]);
  assert.deepEqual([...top.mdat], [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(numbers("stts"), [0, 3, 1, 40, 1, 50, 1, 40]);
  assert.deepEqual(numbers("stsz"), [0, 0, 3, 3, 1, 2]);
  assert.deepEqual(numbers("stss"), [0, 2, 1, 3]); // key frames
  const [, , start] = numbers("stco");
  assert.deepEqual([...file.subarray(start, start + 3)], [1, 2, 3]);
});

/**
 * Return the elements of a part of a WebM file: ID and content, if their sizes match the data.
 *
 * @param {Uint8Array} part
 * @returns {[number, Uint8Array][]}
 */
function elements(part) {
  if (!part.length) return [];
  const width = Math.clz32(part[0]) - 23,
    id = part.subarray(0, width).reduce((sum, byte) => 256 * sum + byte, 0),
    start = width + 8,
    size = view(part).getUint32(width + 4);
  assert.equal(part[width], 1); // sizes take seven bytes
  assert.ok(start + size <= part.length, `an element of ${size} bytes in ${part.length}`);
  return [[id, part.subarray(start, start + size)], ...elements(part.subarray(start + size))];
}

test("a WebM has a group for each picture that stands alone, and says where", () => {
  const [, [, segment]] = elements(webm(film)),
    inside = elements(segment),
    groups = inside.filter(([id]) => id === 0x1f43b675),
    [, cues] = /** @type {[number, Uint8Array]} */ (inside.find(([id]) => id === 0x1c53bb6b));
  const blocks = groups.map(([, group]) =>
    elements(group).flatMap(([id, block]) => (id === 0xa3 ? [[...block]] : [])),
  );
  assert.deepEqual(blocks, [
    [
      [0x81, 0, 0, 0x80, 1, 2, 3],
      [0x81, 0, 40, 0, 4],
    ],
    [[0x81, 0, 0, 0x80, 5, 6]],
  ]);
  const places = elements(cues).map(([, point]) => {
    const [, [, place]] = elements(point),
      [, [, at]] = elements(place);
    return view(at).getUint32(0);
  });
  assert.deepEqual(
    places,
    groups.map(([, group]) => group.byteOffset - segment.byteOffset - 12),
  );
});

test("an archive has the check sum of the standard and lists what is in it", () => {
  const pieces = zip([
      { name: "a.txt", data: Uint8Array.from("123456789", (c) => c.charCodeAt(0)) },
      { name: "b", data: new Uint8Array() },
    ]),
    file = joined(pieces),
    end = view(file.subarray(-22));
  assert.equal(text(file.subarray(-22, -18)), "PK\x05\x06");
  assert.equal(end.getUint16(10, true), 2);
  assert.equal(text(file.subarray(end.getUint32(16, true)).subarray(0, 4)), "PK\x01\x02");
  assert.equal(view(file).getUint32(14, true), 0xcbf43926);
});
