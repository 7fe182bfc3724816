// Elements of the Prototypes page.
import type { Prototypes } from "./prototypes.ts";
import { useLayoutEffect, useRef } from "preact/hooks";
import { show as number } from "../../kit/dom.ts";
import { Foreign, Live, Notice, Pills } from "../../kit/panel/panel.tsx";
import { Painting } from "../../kit/panel/painting.tsx";
import { barAt, paintBars, paintClose, paintImage } from "./details.ts";
import { Side, Swatch } from "./side.tsx";
import { MEASURES, describeBars, describePlane, errorsOf, percent } from "./words.ts";

export interface PartProps {
  app: Prototypes;
}

export const Page = ({ app }: PartProps) => (
  <>
    <Notice text={app.notice} />
    <div class="stage three">
      <div class="left">
        <Foreign element={app.figure.root} />
        <Foreign element={app.story.whole} />
        <Legend app={app} />
        <Caption app={app} />
        {!app.session.hidden.has("overlap") && <Overlaps app={app} />}
      </div>
      <div class="middle">
        <Details app={app} />
        <div>
          <h4>Choose an image</h4>
          <Gallery app={app} />
        </div>
      </div>
      <Side app={app} />
    </div>
    <Live text={app.live} />
  </>
);

// Signs of the plane, by class of their style.
const SIGNS = [
  ["ring", "average of the image"],
  ["diamond", "combination of prototypes"],
  ["own", "features of the image"],
  ["cell", "share of a cell"],
];

function Legend({ app }: PartProps) {
  const theme = app.session.theme.value,
    classes = app.plane.value?.classes ?? [];
  return (
    <div class="legend">
      {SIGNS.map(([sign, meaning]) => (
        <span class="key" key={sign}>
          <i class={sign} />
          {meaning}
        </span>
      ))}
      {app.view.value.shown.map((c, slot) => (
        <span class="key" key={c}>
          <Swatch slot={slot} theme={theme} />
          class {classes[c]}
        </span>
      ))}
    </div>
  );
}

function Caption({ app }: PartProps) {
  const plane = app.plane.value,
    one = app.one.value;
  if (plane && one) app.figure.canvas.ariaLabel = describePlane(plane, one);
  return (
    <p class="caption">
      {plane &&
        `${plane.total} images of ${plane.classes.length} classes. Squares: prototype patches, with a line from each feature of the image. Outlines: hulls of the classes. Marks: averages of their images. Point at a cell or bar, or click an average.`}
    </p>
  );
}

// The image, the close-up of its average, the bound, and the histogram.
function Details({ app }: PartProps) {
  const plane = app.plane.value,
    one = app.one.value,
    theme = app.session.theme.value;
  if (!plane || !one) return null;
  const { image, view } = one,
    { total, holds, mean } = plane,
    look = { shown: plane.shown, show: app.shows.value, ...app.pointed.value },
    whose = `mage ${view.picture[1] + 1} of class ${image.name}`;
  return (
    <>
      <div>
        <h4>I{whose}; close-up of its average</h4>
        <div class="pair">
          <Painting
            class="large"
            role="img"
            aria-label={`i${whose}`}
            paint={(ctx, size) => paintImage(ctx, size, one, app.pixels, plane, look.hover, theme)}
          />
          <Painting
            class="close"
            role="img"
            aria-label={`close-up about the average: ${errorsOf(one)}`}
            paint={(ctx, size) => paintClose(ctx, size, plane, one, look, theme)}
          />
        </div>
      </div>
      <div class="bound" role="group" aria-label="the bound for this image">
        <span title="Distance between the average and the combination of prototypes">
          <small class="key">
            <i />
            error
          </small>
          <b data-readout="error">{number(image.error)}</b>
        </span>
        <Sign holds={image.error <= image.mean_distance + 1e-12} />
        <span title="Mean distance from a feature to its prototype">
          <small class="key">
            <i class="circle dashed" />
            mean distance
          </small>
          <b data-readout="mean_distance">{number(image.mean_distance)}</b>
        </span>
        <Sign holds={image.mean_distance <= image.radius + 1e-12} />
        <span title="Largest distance from a feature to its prototype">
          <small class="key">
            <i class="circle" />
            δ, the largest
          </small>
          <b data-readout="radius">{number(image.radius)}</b>
        </span>
      </div>
      <p class="count">
        {`The bound holds for ${holds === total ? "all" : `${holds} of`} ${total} images. On average: ${number(mean.error)} ≤ ${number(mean.mean_distance)} ≤ ${number(mean.radius)}.`}
      </p>
      <div>
        <h4>Histogram over the prototypes</h4>
        <Painting
          class="bars"
          role="img"
          aria-label={describeBars(one)}
          paint={(ctx, w, h) => paintBars(ctx, w, h, plane, one, look, theme)}
          onPointerMove={({ offsetX, currentTarget }) =>
            app.look(barAt(offsetX, currentTarget.clientWidth, one.histogram.length))
          }
          onPointerLeave={() => app.look(-1)}
        />
        <div class="legend">
          <span class="key">
            <i class="square own" />
            image
          </span>
          <span class="key">
            <i />
            class means
          </span>
          <span class="key">
            <i class="dotted" />
            τ/m
          </span>
        </div>
      </div>
    </>
  );
}

const Sign = ({ holds }: { holds: boolean }) => <span class="sign">{holds ? "≤" : ">"}</span>;

// Images of one class, cut out of one sheet that holds those of all classes.
function Gallery({ app }: PartProps) {
  const plane = app.plane.value,
    [c, rank] = app.view.value.picture,
    sheet = useRef<HTMLDivElement>(null),
    { columns, base } = app.session.data;
  useLayoutEffect(() => {
    const list = sheet.current;
    if (list?.matches(":focus")) list.children[rank]?.scrollIntoView({ block: "nearest" });
  }, [c, rank]);
  if (!plane) return null;
  const rows = Math.ceil(plane.most / columns),
    all = rows * plane.classes.length,
    address = new URL(plane.sheet, new URL(base, location.href)).href;
  const position = (i: number) => {
    const row = c * rows + Math.floor(i / columns);
    return `${(100 * (i % columns)) / (columns - 1)}% ${(100 * row) / Math.max(1, all - 1)}%`;
  };
  return (
    <>
      <Pills
        label="class of the image"
        pills={plane.classes.map((text, i) => ({ value: String(i), text }))}
        value={String(c)}
        onChange={(i) => app.choose(Number(i), Math.min(rank, plane.counts[Number(i)] - 1))}
      />
      <div
        ref={sheet}
        class="sheet"
        role="listbox"
        aria-label="images of the class"
        aria-activedescendant={`tile-${rank}`}
        tabIndex={0}
        onKeyDown={(event) => app.key(event, columns)}
      >
        {Array.from({ length: plane.counts[c] }, (_, i) => (
          <div
            key={i}
            class="tile"
            role="option"
            id={`tile-${i}`}
            aria-label={`image ${i + 1} of class ${plane.classes[c]}`}
            aria-selected={i === rank}
            onClick={() => app.choose(c, i)}
            style={`background-image: url("${address}"); background-size: ${100 * columns}% ${100 * all}%; background-position: ${position(i)}`}
          />
        ))}
      </div>
    </>
  );
}

function Overlaps({ app }: PartProps) {
  const plane = app.plane.value;
  if (!plane) return null;
  const { classes, pairs, overlaps, tau } = plane,
    numbers = MEASURES.slice(0, 4).map(([name]) => name);
  const cells = (row: Record<string, unknown>) =>
    numbers.map((name) => (
      <td key={name} data-measure={name}>
        {row[name] === null ? "–" : number(row[name] as number)}
      </td>
    ));
  return (
    <section class="overlap">
      <h4>Overlap of the classes</h4>
      <div class="scroll">
        <table class="overlaps">
          <thead>
            <tr>
              <th scope="col">classes</th>
              {MEASURES.map(([name, title, help]) => (
                <th key={name} scope="col" title={help}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {pairs.map((pair) => (
              <tr key={`${pair.a} ${pair.b}`}>
                <th scope="row">{`${classes[pair.a]} | ${classes[pair.b]}`}</th>
                {cells({ ...pair })}
                <td data-measure="membership_rate">
                  {`${percent(pair.membership_rate)} | `}
                  <wbr />
                  {percent(pair.back)}
                </td>
              </tr>
            ))}
            <tr class="mean">
              <th scope="row">all pairs</th>
              {cells(overlaps)}
              <td>{percent(overlaps.membership_rate)}</td>
            </tr>
          </tbody>
        </table>
      </div>
      <p class="caption">
        {`All pairs: mean over the ${(classes.length * (classes.length - 1)) / 2} pairs of ${classes.length} classes. Active: share above τ/m = ${number(tau)}.`}
      </p>
    </section>
  );
}
