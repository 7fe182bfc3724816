// Collage page: opacity, rows of images with weight maps, conclusion.
import { useLayoutEffect, useRef } from "preact/hooks";
import { useComputed } from "@preact/signals";
import type { Collage } from "./collage.ts";
import type { CollageImage, CollageRow } from "./types.ts";
import { paintScale } from "../../kit/component.ts";
import { drawing } from "../../kit/dom.ts";
import { Foreign } from "../../kit/panel/panel.tsx";

// Black, purple, orange, pale yellow: lighter means more weight, on any image and for any colour
// vision.
const HEAT = [
  [0, 0, 4],
  [66, 10, 104],
  [147, 38, 103],
  [221, 81, 58],
  [252, 165, 10],
  [252, 255, 164],
];
const heat = (t: number) => {
  const x = Math.min(Math.max(t, 0), 1) * (HEAT.length - 1),
    i = Math.min(Math.floor(x), HEAT.length - 2),
    f = x - i;
  return HEAT[i].map((v, c) => Math.round(v + (HEAT[i + 1][c] - v) * f));
};
const percent = (x: number) => `${(100 * x).toFixed(0)} %`;
const PLACES = ["top left", "top right", "bottom left", "bottom right"];
const placeOf = (tile: number, grid: number) =>
  grid === 2 ? PLACES[tile] : `in row ${Math.floor(tile / grid) + 1}, column ${(tile % grid) + 1}`;

export function Page({ app }: { app: Collage }) {
  const { rows, images, most, grid, tag } = app.data;
  return (
    <>
      <div class="below">
        <Fader app={app} />
        <span class="bar">
          <span>0</span>
          <span class="blend" style={app.style}>
            <Scale most={most} />
          </span>
          <span>{`${most.toFixed(most < 10 ? 1 : 0)} × the average weight`}</span>
        </span>
        {grid > 0 && (
          <span class="key">
            <i class="marker" />
            tile that shows the class
          </span>
        )}
        <span class="key">
          <i class="chosen" />
          selected image
        </span>
      </div>
      <div style={app.style}>
        {rows.map((row, r) => (
          <div key={tag + r} class="line" role="group" aria-label={row.name}>
            <h4>
              <bdi>{row.name}</bdi>
              <small>{row.words}</small>
            </h4>
            <div class="cells">
              {images.map((image, i) => (
                <Cell key={i} app={app} row={row} image={image} map={mapOf(app, r, i)} index={i} />
              ))}
            </div>
          </div>
        ))}
      </div>
      <Foreign element={app.story.whole} />
      <Here app={app} />
    </>
  );
}

// Components of their own, because one with the text of a signal is rendered by that signal alone.
const Fader = ({ app: { opacity, setState } }: { app: Collage }) => (
  <label>
    Weight map
    <input
      type="range"
      min={0}
      max={1}
      step={0.05}
      aria-label="opacity of the weight maps"
      value={String(opacity.peek())}
      onInput={(e) => {
        opacity.value = Number(e.currentTarget.value);
      }}
      onChange={() => setState("opacity", opacity.value)}
    />
    <output>{useComputed(() => percent(opacity.value))}</output>
  </label>
);
const Here = ({ app }: { app: Collage }) => (
  <p class="here" aria-live="polite">
    {app.here}
  </p>
);

function Scale({ most }: { most: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (canvas.current) paintScale(canvas.current, heat);
  }, []);
  return (
    <canvas
      ref={canvas}
      width={128}
      height={1}
      role="img"
      aria-label={`black is no weight, pale yellow ${most.toFixed(1)} times the average`}
    />
  );
}

function mapOf({ maps, data: { side } }: Collage, row: number, image: number) {
  const size = side[0] * side[1];
  return maps[row].subarray(image * size, (image + 1) * size);
}

interface CellProps {
  app: Collage;
  row: CollageRow;
  image: CollageImage;
  map: Uint8Array; // weights of the image; 255 means `most`
  index: number;
}

function Cell({ app, row, image, map, index }: CellProps) {
  const { side, most, grid, chosen } = app.data,
    [height, width] = side,
    share = row.shares ? `${percent(row.shares[index])} on the tile` : "",
    where = grid ? `, foreground ${placeOf(image.tile, grid)}` : "",
    source = image.source || (row.images && row.images + image.index);
  // Names start with the visible text, so that speech input can address the button.
  const seen = [share, image.name].filter(Boolean).join(" "),
    label = `${seen}, sample ${image.index}${where}`;
  const tell = ({ clientX, clientY, currentTarget }: PointerEvent) => {
    const canvas = (currentTarget as HTMLElement).querySelector("canvas"),
      box = (canvas ?? (currentTarget as HTMLElement)).getBoundingClientRect(),
      x = Math.floor(((clientX - box.left) / box.width) * width),
      y = Math.floor(((clientY - box.top) / box.height) * height);
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    const times = (map[y * width + x] / 255) * most,
      part = ((100 * times) / (width * height)).toFixed(2);
    app.here.value = `${row.name}, ${image.name}: weight ${times.toFixed(2)} × the average, ${part} % of the total, at row ${y + 1}, column ${x + 1} of ${height} × ${width}`;
  };
  return (
    <button
      class="cell"
      data-index={image.index}
      aria-pressed={image.index === chosen}
      aria-label={label}
      title={label}
      onClick={() => app.setState("chosen", image.index)}
      onPointerMove={tell}
    >
      <span class="frame">
        <span class="image">
          {source && <img src={source} alt="" loading="lazy" />}
          <WeightMap map={map} width={width} height={height} />
          {grid > 0 && <span class="tile" style={tileBox(image.tile, grid)} />}
        </span>
      </span>
      <span class="under">
        <span class="share">{share}</span> <bdi class="name">{image.name}</bdi>
      </span>
    </button>
  );
}

function tileBox(tile: number, grid: number) {
  const part = 100 / grid,
    percents = { left: tile % grid, top: Math.floor(tile / grid), width: 1, height: 1 };
  return Object.fromEntries(Object.entries(percents).map(([k, v]) => [k, `${part * v}%`]));
}

function WeightMap({ map, width, height }: { map: Uint8Array; width: number; height: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (!canvas.current) return;
    const ctx = drawing(canvas.current),
      pixels = ctx.createImageData(width, height);
    map.forEach((value, j) => pixels.data.set([...heat(value / 255), 255], 4 * j));
    ctx.putImageData(pixels, 0, 0);
  }, []); // drawn once; other data has other elements
  return <canvas ref={canvas} width={width} height={height} />;
}
