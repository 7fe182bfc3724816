// Data from Python: other points, another look, other tags, marks and selections.
import { batch } from "@preact/signals";
import type { Explore } from "./explore.tsx";
import type { Look, MapData, Points } from "./types.ts";
import { applyTheme } from "../../kit/dom.ts";
import { applySelection, openSample } from "./actions.ts";
import { Cloud } from "./cloud.ts";
import { FILTERS, chosenMetadata, readTags } from "./facets.ts";
import { loadColumn, loadFrame, loadTags, reveal, tryFetch } from "./files.ts";
import { lookOf, offered, withoutMetadata } from "./state.ts";

// Show what Python sent; points, tags and selections are loaded if they are others.
export async function receive(map: Explore, data: MapData) {
  const { s } = map,
    fresh = data.points !== map.address,
    reopened = data.opened !== map.opened;
  let look = reopened ? data.look : lookOf(s.look);
  if (data.run !== map.data.run) look = withoutMetadata(look);
  batch(() => {
    if (data.run !== map.data.run) s.revealed.value = new Set(); // columns of another run
    if (fresh) s.cloud.value = null;
    s.data.value = data;
    show(map, look);
  });
  map.opened = data.opened;
  map.address = data.points;
  if (fresh) {
    const points = tryFetch<Points>(map, "points.bin"),
      [arrived] = await Promise.all([points, map.ready]);
    if (map.address !== data.points || !arrived) return;
    setPoints(map, new Cloud(arrived));
  }
  const cloud = s.cloud.peek();
  if (!cloud) return;
  if (reopened || fresh) takeOver(map, cloud);
  s.theme.value = applyTheme(map.root, map.whole);
  map.font = getComputedStyle(map.whole).fontFamily;
  await loadTags(map, data.tags);
  if (s.cloud.peek() !== cloud) return;
  mark(map, cloud);
  if (reopened || fresh) openLinked(map, cloud);
  map.canvas.dataset.own = String(data.own ?? "");
  await applySelection(map, data.seq, data.selection?.id ?? null);
  map.figure.invalidate();
}

function show({ s }: Explore, look: Look) {
  for (const [name, value] of Object.entries(look))
    s.look[name as keyof Look].value = value as never;
}

function setPoints(map: Explore, cloud: Cloud) {
  const { s, player } = map,
    { steps, menus } = map.data,
    last = cloud.from;
  map.tagId = "";
  map.selection = null;
  batch(() => {
    for (const part of [s.mask, s.preview, s.line, s.card, s.sample]) part.value = null;
    for (const part of [s.columns, s.failed, s.contours]) part.value = {};
    s.hovered.value = -1;
    s.count.value = 0;
    s.marked.value = [];
    s.tags.value = readTags(null, cloud.count);
    s.cloud.value = cloud;
  });
  player.update(steps, last, (k) =>
    k === steps.length - 1 ? Promise.resolve(last) : loadFrame(map, k, last),
  );
  map.makeRoom();
  for (const name of FILTERS) if (name in menus.colour) loadColumn(map, name);
}

// Apply the display settings of a link or a view, without those that this map does not offer.
function takeOver(map: Explore, { classes }: Cloud) {
  const { s, camera } = map,
    { menus, look } = map.data,
    labels = new Set(classes.map((c) => c.label));
  camera.look(...look.window);
  batch(() => show(map, offered(lookOf(s.look), menus, labels)));
  for (const name of chosenMetadata(lookOf(s.look)).keys()) reveal(map, name);
}

// Mark the samples of a link, and bring the first of them into view.
function mark({ s, data, figure, camera }: Explore, cloud: Cloud) {
  const rows = data.marks.map((index) => cloud.row(index)).filter((row) => row >= 0);
  if (String(rows) === String(s.marked.peek())) return;
  s.marked.value = rows;
  if (!rows.length) return;
  const place = [cloud.x(rows[0]), cloud.y(rows[0])],
    { width, height, to } = figure.view,
    [x, y] = to(place);
  if (x < 0 || y < 0 || x > width || y > height) camera.look(place[0], place[1]);
}

// Open the sample of a link.
function openLinked(map: Explore, cloud: Cloud) {
  const { s } = map,
    index = s.look.sample.peek(),
    row = index < 0 ? -1 : cloud.row(index),
    where = map.data.trained ? "the test split of this run" : "this embedding set";
  if (row >= 0) openSample(map, row);
  else if (index >= 0) s.notice.value = `The sample in the link is not in ${where}.`;
}
