// Files of a map (pages/inspection/explore/service.py): points, columns, tags, selections, contours.
import type { Explore } from "./explore.tsx";
import type {
  Colouring,
  Contours,
  Facts,
  Frame,
  Mask,
  Metadata,
  SelectionBits,
  TagBits,
} from "./types.ts";
import { decode } from "../../kit/socket.ts";
import { unpacked } from "./cloud.ts";
import { readTags } from "./facets.ts";

class Refused extends Error {}
const requested = new WeakMap<object, Set<string>>(); // columns that are being loaded, by cloud

// Return a file of the map. Throws Refused with a message for the visitor if it cannot be loaded.
async function fetchFile<A extends object>(map: Explore, name: string): Promise<A> {
  const answer = await fetch(`${map.address}${name}`).catch(() => null);
  if (answer?.ok) return decode(await answer.arrayBuffer());
  throw new Refused(
    answer?.status === 409
      ? await answer.text()
      : "Part of the map could not be loaded. Check that the server is running, then reload the page.",
  );
}

// Return a file of the map; on failure report the message and return null.
export async function tryFetch<A extends object>(
  map: Explore,
  name: string,
  report = (message: string) => {
    map.s.notice.value = message;
  },
): Promise<A | null> {
  try {
    return await fetchFile(map, name);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report(error.message);
    return null;
  }
}

// Load a column of the points, unless it is there or on its way.
export async function loadColumn(map: Explore, name: Exclude<Colouring, "class">) {
  const { s } = map,
    cloud = s.cloud.peek();
  if (!cloud || name === "tags" || s.columns.peek()[name]) return;
  const waiting = requested.get(cloud) ?? new Set();
  requested.set(cloud, waiting);
  if (waiting.has(name)) return;
  waiting.add(name);
  const facts = await tryFetch<Facts>(map, `${name}.bin`, (message) => {
    if (s.cloud.peek() === cloud) s.failed.value = { ...s.failed.peek(), [name]: message };
  });
  waiting.delete(name);
  if (facts && s.cloud.peek() === cloud) s.columns.value = { ...s.columns.peek(), [name]: facts };
}

// List the values of a metadata column from now on.
export function reveal(map: Explore, name: Metadata) {
  const { revealed } = map.s;
  if (!revealed.peek().has(name)) revealed.value = new Set([...revealed.peek(), name]);
  loadColumn(map, name);
}

// Load the tags of the run, identified by `id`; "" if there are none.
export async function loadTags(map: Explore, id: string) {
  const { s } = map,
    cloud = s.cloud.peek();
  if (!cloud || id === map.tagId) return;
  map.tagId = id;
  const found = id ? await tryFetch<TagBits>(map, `tags-${id}.bin`) : null;
  if (cloud === s.cloud.peek() && id === map.tagId) s.tags.value = readTags(found, cloud.count);
}

// Return the mask of a stored selection.
export async function loadSelection(map: Explore, id: string, count: number): Promise<Mask> {
  const found = await tryFetch<SelectionBits>(map, `selection-${id}.bin`);
  return found ? unpacked(found.bits, count) : new Uint8Array(count);
}

// Return the points of a frame of the training run; the given ones if it cannot be loaded.
export const loadFrame = (map: Explore, k: number, otherwise: Frame["xy"]) =>
  tryFetch<Frame>(map, `frame-${k}.bin`).then((frame) => frame?.xy ?? otherwise);

// Return the density contours of the current frame; null until they are loaded, and between frames.
export function contoursNow(map: Explore) {
  const { s, player } = map,
    cloud = s.cloud.peek(),
    k = player.steps.length > 1 ? Math.round(player.at) : 0;
  if (!cloud || cloud.share) return null;
  if (!(k in s.contours.peek())) {
    const put = (found: Contours | null) => {
      if (cloud === s.cloud.peek()) s.contours.value = { ...s.contours.peek(), [k]: found };
    };
    put(null);
    tryFetch<Contours>(map, `contours-${k}.bin`).then(put);
  }
  return s.contours.peek()[k];
}
