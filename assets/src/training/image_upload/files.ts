// Files that a visitor has chosen or dropped: which of them are images, and their paths.

import type { Entry, Gathered, UploadData } from "./types.ts";
import { MOST_ENTRIES } from "../../kit/zip.ts";

const MEGABYTE = 2 ** 20,
  LONGEST = 200; // characters of a message

// Return the images among some files, with paths below their common folder, the name of that
// folder, and a message if they cannot be uploaded.
export function gather(
  given: Entry[],
  { suffixes, megabytes }: Pick<UploadData, "suffixes" | "megabytes">,
): Gathered {
  const images = given.filter(({ path }) => isImage(path, suffixes)),
    size = images.reduce((sum, { file }) => sum + file.size, 0) / MEGABYTE,
    top = images[0]?.path.split("/")[0] + "/",
    nested = images.every(({ path }) => path.startsWith(top)),
    entries = nested ? images.map((e) => ({ ...e, path: e.path.slice(top.length) })) : images;
  let refusal = "";
  if (!images.length) refusal = `No images here (${suffixes.join(", ")}).`;
  else if (size > megabytes)
    refusal = `${Math.ceil(size)} MB of images; the limit is ${megabytes} MB. Give a path instead.`;
  else if (images.length > MOST_ENTRIES)
    refusal = `${images.length.toLocaleString("en")} images; the limit is ${MOST_ENTRIES.toLocaleString("en")}. Give a path instead.`;
  return { entries, name: nested && images.length ? top.slice(0, -1) : "images", refusal };
}

// Return all files in and below dropped entries.
export async function walk(entries: (FileSystemEntry | null)[]): Promise<Entry[]> {
  const each = entries.map(async (entry) => {
    if (!entry) return [];
    if (entry.isFile) return [await fileOf(entry as FileSystemFileEntry)];
    return walk(await children(entry as FileSystemDirectoryEntry));
  });
  return (await Promise.all(each)).flat();
}

export const shorten = (text: string) => text.slice(0, LONGEST);

function isImage(path: string, suffixes: string[]) {
  const name = path.toLowerCase(),
    hidden = path.split("/").some((step) => step.startsWith(".") || step.startsWith("__MACOSX"));
  return !hidden && suffixes.some((suffix) => name.endsWith(`.${suffix}`));
}

function fileOf(entry: FileSystemFileEntry): Promise<Entry> {
  const path = entry.fullPath.replace(/^\//, "");
  return new Promise((resolve, reject) => {
    entry.file((file) => resolve({ path, file }), reject);
  });
}

// Return the entries of a folder, which a browser lists a hundred at a time.
async function children(
  folder: FileSystemDirectoryEntry,
  reader = folder.createReader(),
): Promise<FileSystemEntry[]> {
  const some: FileSystemEntry[] = await new Promise((resolve, reject) => {
    reader.readEntries(resolve, reject);
  });
  return some.length ? [...some, ...(await children(folder, reader))] : [];
}
