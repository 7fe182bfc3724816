// ZIP archives without compression, made in the browser: images are compressed already.

export type Entry = { path: string; file: Blob };

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
const UTF8 = 0x0800; // flag: names are UTF-8
const VERSION = 20;
const DATE = 0x21; // 1 January 1980
const SIZES = "2222244422"; // bytes of the numbers that local and central headers share
export const MOST_ENTRIES = 0xffff; // of a ZIP archive without extensions

// Return the CRC-32 of some bytes.
export function crc32(bytes: Uint8Array) {
  let crc = ~0;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 255];
  return ~crc >>> 0;
}

// Return a ZIP archive of some files, which are read one after the other. `report` receives the
// number of files that have been read.
// entries: at most MOST_ENTRIES, with less than 4 GB in all
export async function zip(entries: Entry[], report: (done: number) => void = () => {}) {
  const checksums = await checksumsOf(entries, report);
  const contents: BlobPart[] = [];
  const directory: BlobPart[] = [];
  let offset = 0,
    directorySize = 0;
  for (const [i, { path, file }] of entries.entries()) {
    const name = new TextEncoder().encode(path),
      shared = [VERSION, UTF8, 0, 0, DATE, checksums[i], file.size, file.size, name.length, 0];
    contents.push(header(0x04034b50, SIZES, shared), name, file);
    directory.push(header(0x02014b50, `2${SIZES}22244`, [VERSION, ...shared, 0, 0, 0, 0, offset]));
    directory.push(name);
    offset += 30 + name.length + file.size;
    directorySize += 46 + name.length;
  }
  const count = entries.length,
    end = header(0x06054b50, "2222442", [0, 0, count, count, directorySize, offset, 0]);
  return new Blob([...contents, ...directory, end], { type: "application/zip" });
}

// Return the CRC-32 of each file; one file at a time is in memory.
function checksumsOf(entries: Entry[], report: (done: number) => void) {
  return entries.reduce(
    async (before, { file }) => {
      const done = await before;
      done.push(crc32(new Uint8Array(await file.arrayBuffer())));
      report(done.length);
      return done;
    },
    Promise.resolve([] as number[]),
  );
}

// Return a record: its signature, then little-endian numbers with the given sizes in bytes.
// sizes: one digit per number, 2 or 4
function header(signature: number, sizes: string, numbers: number[]) {
  const view = new DataView(new ArrayBuffer(4 + [...sizes].reduce((sum, size) => sum + +size, 0)));
  view.setUint32(0, signature, true);
  let at = 4;
  for (const [i, size] of [...sizes].entries()) {
    if (size === "2") view.setUint16(at, numbers[i], true);
    else view.setUint32(at, numbers[i], true);
    at += +size;
  }
  return view.buffer;
}
