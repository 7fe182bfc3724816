// ZIP archives without compression, made in the browser: images are compressed already.
import { Zip, ZipPassThrough } from "fflate";

export const MOST_ENTRIES = 0xffff; // of a ZIP archive without extensions
const DATE = new Date(1980, 0, 1); // constant, so that equal files give equal archives

// Return an empty archive, for at most MOST_ENTRIES files with less than 4 GB in all. It refers to
// the blobs that are added and keeps none of their bytes in memory.
export function zipArchive() {
  const parts: BlobPart[] = [];
  const archive = new Zip((error, bytes) => {
    if (error) throw error;
    parts.push(bytes);
  });
  return {
    async add(path: string, file: Blob) {
      const entry = new ZipPassThrough(path),
        bytes = new Uint8Array(await file.arrayBuffer());
      entry.mtime = DATE;
      archive.add(entry);
      entry.push(bytes, true); // computes the checksum and passes the same bytes on
      parts[parts.lastIndexOf(bytes)] = file;
    },
    end() {
      archive.end();
      return new Blob(parts, { type: "application/zip" });
    },
  };
}
