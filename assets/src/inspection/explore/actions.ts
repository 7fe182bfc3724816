// Actions of visitors: change filters and colours, select, look at points, tag, keep views.
import { batch } from "@preact/signals";
import type { Explore } from "./explore.tsx";
import type { Filtered, History, Keep, Lasso, Look, Mask, Metadata, Near } from "./types.ts";
import { corners, packed } from "./cloud.ts";
import { FILTERS, numberOf } from "./facets.ts";
import { loadSelection, tryFetch } from "./files.ts";
import { lookOf } from "./state.ts";
import { titleOf, valueOf } from "./texts.ts";

const DWELL = 125, // ms before an image is fetched
  REST = 400, // ms until a gesture counts as ended
  LEAST = 3; // corners of a lasso

// ---- display settings

// Change a display setting.
export function set<K extends keyof Look>(map: Explore, name: K, value: Look[K]) {
  map.s.look[name].value = value;
  reportLook(map);
}

// Return the display settings with the window of the camera.
export function currentLook({ s, camera }: Explore): Look {
  const look = lookOf(s.look),
    [x, y, zoom] = [camera.x, camera.y, camera.zoom].map((v) => Number(v.toPrecision(5)));
  return { ...look, classes: look.classes.slice(0, 50), window: [x, y, zoom] };
}

// Report the display settings after a pause, so that the link includes them.
export function reportLook(map: Explore) {
  clearTimeout(map.reporting);
  map.reporting = setTimeout(() => map.setState("look", currentLook(map)), REST);
}

const toggled = <T>(values: T[], value: T) =>
  values.includes(value) ? values.filter((one) => one !== value) : [...values, value];

// Highlight a class, or no longer; null highlights all.
export const toggleClass = (map: Explore, label: number | null) =>
  set(map, "classes", label === null ? [] : toggled(map.s.look.classes.peek(), label));

// Toggle a value of a filter column.
export const toggleValue = (map: Explore, name: Filtered, value: number) =>
  set(map, name, toggled(map.s.look[name].peek(), value));

// Toggle a tag as a filter.
export const toggleTag = (map: Explore, tag: string) =>
  set(map, "tags", toggled(map.s.look.tags.peek(), tag));

// Toggle a category of a metadata column.
export const toggleCategory = (map: Explore, name: Metadata, code: number) =>
  set(map, "meta", toggled(map.s.look.meta.peek(), `${numberOf(name)}-${code}`));

// Highlight an interval of the scale of a metadata column; null for all values.
export function chooseInterval(map: Explore, name: Metadata, interval: [number, number] | null) {
  const number = String(numberOf(name)),
    others = map.s.look.meta.peek().filter((text) => text.split("-")[0] !== number);
  set(map, "meta", interval ? [...others, [number, ...interval].join("-")] : others);
}

// Highlight all points.
export const clearFilters = (map: Explore) =>
  batch(() => {
    for (const name of [...FILTERS, "classes", "meta", "tags"] as const) set(map, name, []);
  });

// ---- selection

// Return the points inside the lasso; null if it has too few corners.
function enclosed({ s }: Explore, add: boolean) {
  const line = s.line.peek(),
    polygon = line && line.length >= LEAST ? corners(line) : new Uint16Array();
  if (polygon.length < 2 * LEAST) return null;
  const inside = s.cloud.peek()?.maskInside(polygon),
    before = add && s.mask.peek();
  if (!inside) return null;
  return { polygon, mask: before ? inside.map((bit, i) => bit | before[i]) : inside };
}

// Preview the selection of the unfinished lasso in the next frame.
export function foresee(map: Explore, add: boolean) {
  map.foreseen ||= requestAnimationFrame(() => {
    map.foreseen = 0;
    const mask = enclosed(map, add)?.mask;
    map.s.preview.value = mask?.includes(1) ? mask : null;
  });
}

// End the lasso without a selection.
export function dropLasso({ s }: Explore) {
  s.line.value = null;
  s.preview.value = null;
}

// Select the points inside the lasso.
export function enclose(map: Explore, add: boolean) {
  const frame = map.player.settle(),
    found = enclosed(map, add);
  cancelAnimationFrame(map.foreseen);
  map.foreseen = 0;
  if (!found) return dropLasso(map);
  report(map, { polygon: packed(found.polygon), frame, add });
  select(map, found.mask);
}

// Select a point, or no longer.
export function toggleRow(map: Explore, row: number) {
  const { cloud, mask } = map.s,
    points = cloud.peek();
  if (row < 0 || !points) return;
  const next = mask.peek()?.slice() ?? new Uint8Array(points.count);
  next[row] ^= 1;
  report(map, { toggle: points.indices[row] });
  select(map, next);
}

const report = (map: Explore, message: Lasso) => map.tell("lasso", { ...message, seq: ++map.seq });

// Show the browser's result at once; Python computes the same selection and stores it.
function select(map: Explore, mask: Mask) {
  const { s } = map,
    count = mask.reduce((sum, bit) => sum + bit, 0);
  map.selection = count ? "pending" : null;
  s.count.value = count;
  // show the number before 60,000 points are filtered, counted and drawn
  requestAnimationFrame(() =>
    batch(() => {
      s.line.value = null;
      s.preview.value = null;
      s.mask.value = count ? mask : null;
    }),
  );
}

// Show the selection that Python has stored, unless a later one is on its way.
export async function applySelection(map: Explore, seq: number, id: string | null) {
  const count = map.s.cloud.peek()?.count ?? 0;
  if (id === map.selection || (map.selection === "pending" && seq < map.seq)) return;
  map.selection = id;
  const mask = id ? await loadSelection(map, id, count) : null;
  if (map.selection !== id) return;
  map.s.mask.value = mask;
  map.s.count.value = mask?.reduce((sum, bit) => sum + bit, 0) ?? 0;
  map.canvas.dataset.selection = id ?? "";
}

// ---- one point

// Look at a point, -1 for none; onMap: the pointer is on the map, not on the images.
export function hover(map: Explore, row: number, onMap = true) {
  const { hovered, card } = map.s,
    open = card.peek();
  if (row === hovered.peek()) return;
  hovered.value = row;
  clearTimeout(map.dwelling);
  if (!onMap) return;
  if (row < 0 && open && !open.pinned) card.value = null;
  if (row < 0) return;
  const show = () => {
    if (!open?.pinned) card.value = { row, pinned: false };
    announce(map, row);
  };
  map.dwelling = setTimeout(show, open && !open.pinned ? DWELL / 2 : DWELL);
}

const announce = ({ s }: Explore, row: number) => {
  s.spoken.value = titleOf(s, row) + valueOf(s, row);
};

// Open the card of a point and load its neighbours; -1 closes the card.
export async function openCard(map: Explore, row: number, keyboard = false) {
  const { card, cloud } = map.s,
    points = cloud.peek();
  clearTimeout(map.dwelling);
  card.value = row < 0 ? null : { row, pinned: true };
  if (row < 0) return;
  announce(map, row);
  if (keyboard)
    requestAnimationFrame(() =>
      map.overlay.querySelector<HTMLElement>(".card a")?.focus({ preventScroll: true }),
    );
  const near = await tryFetch<Near>(map, `near-${row}.bin`);
  if (near && card.peek()?.row === row && card.peek()?.pinned && points === cloud.peek())
    card.value = { row, pinned: true, near };
}

// Open the full-screen view of a sample, and load its neighbours and its history.
export async function openSample(map: Explore, row: number) {
  const { sample, cloud, data } = map.s,
    points = cloud.peek();
  sample.value = { row };
  set(map, "sample", points?.indices[row] ?? -1);
  const add = (found: object) => {
    const now = sample.peek();
    if (now?.row === row && points === cloud.peek()) sample.value = { ...now, ...found };
  };
  const load = async (kind: "near" | "history") => {
    // failures are shown in this view, as the map is behind it
    const found = await tryFetch<Near | History>(map, `${kind}-${row}.bin`, (failed) =>
      add({ failed }),
    );
    if (found) add({ [kind]: found });
  };
  await Promise.all([load("near"), data.peek().trained && load("history")]);
}

// Open the sample `step` places further among the images.
export function turnSample(map: Explore, step: number) {
  const rows = map.s.rows.peek(),
    at = rows.indexOf(map.s.sample.peek()?.row ?? -1);
  if (rows.length) openSample(map, rows[(at + step + rows.length) % rows.length]);
}

// Close the full-screen view.
export function closeSample(map: Explore) {
  map.s.sample.value = null;
  set(map, "sample", -1);
  map.bringImage();
}

// Store a tag or a view with the run, or open a view.
export function keep(map: Explore, message: Keep) {
  if ("open" in message) clearTimeout(map.reporting); // drop the pending report of older settings
  map.tell("keep", "view" in message ? { ...message, look: currentLook(map) } : message);
}
