// ZIP archives (APPNOTE 6.3.10) without compression, since PNG is compressed already.
import { joined, bigEndian } from "./bytes.ts";

const VERSION = 20, // version 2.0
  NEW_YEAR_1980 = 0x21; // earliest date of the ZIP format

const TABLE = Uint32Array.from({ length: 256 }, (_, i) => {
  let sum = i;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});
function crc(data: Uint8Array) {
  let sum = 0xffffffff;
  for (const byte of data) sum = TABLE[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}
// Return integers in ZIP's byte order, little-endian.
const little = (width: number, ...values: number[]) =>
  joined(values.map((value) => bigEndian(width, value).reverse()));

// Return the parts of an archive in order.
// files: with names in ASCII
export function zip(files: { name: string; data: Uint8Array<ArrayBuffer> }[]) {
  let at = 0;
  const local = [],
    central = [];
  for (const { name, data } of files) {
    const about = joined([
        little(2, VERSION, 0, 0, 0, NEW_YEAR_1980),
        little(4, crc(data), data.length, data.length),
        little(2, name.length, 0),
      ]),
      head = joined(["PK\x03\x04", about, name]);
    local.push(head, data);
    central.push(
      joined(["PK\x01\x02", little(2, VERSION), about, little(2, 0, 0, 0), little(4, 0, at), name]),
    );
    at += head.length + data.length;
  }
  const list = joined(central);
  const end = joined([
    "PK\x05\x06",
    little(2, 0, 0, files.length, files.length),
    little(4, list.length, at),
    little(2, 0),
  ]);
  return [...local, list, end];
}
