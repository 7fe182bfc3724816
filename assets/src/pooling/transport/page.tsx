// Elements of the Transport page.
import type { Brush } from "./types.ts";
import type { Transport } from "./transport.ts";
import { tidy } from "../../kit/dom.ts";
import { Foreign, Hiding, Live, Menu, Part, Pills, Presets } from "../../kit/panel/panel.tsx";
import { Charts } from "./charts.tsx";
import { STEPS, colourOf, join } from "./draw.ts";
import { Cards, PaintedMap, Plan, WeightScale } from "./maps.tsx";
import { Side } from "./side.tsx";
import { describeCell } from "./words.ts";

const HUES = [
  ["red", join(STEPS, 0)],
  ["blue", join(0, STEPS)],
  ["background", 0],
] as const;

export interface PartProps {
  app: Transport;
}

export const Page = ({ app }: PartProps) => (
  <Hiding hidden={app.session.hidden}>
    <div onKeyDown={(event) => app.key(event)}>
      <Part name="presets">
        <Presets
          offers={app.session.data.options.presets}
          pressed={app.pressed}
          onPress={(i) => app.editor.loadPreset(i)}
        />
      </Part>
      <div class="stage">
        <section class="left">
          <h4>Paint the map</h4>
          <PaintedMap app={app} />
          <p class="caption origin">{app.origin}</p>
          <Part name="brush">
            <BrushPanel app={app} />
          </Part>
          <CellText app={app} />
        </section>
        <section class="middle">
          <Cards app={app} />
          <WeightScale app={app} />
          <Foreign element={app.story.whole} />
          <div class="lower">
            <figure>
              <h4>Features and prototypes</h4>
              <div class="plane">
                <Foreign element={app.figure.root} />
              </div>
              <PrototypeButtons app={app} />
              <p class="caption">
                Dots: pixels, with the number of equal ones. Numbered rings: prototypes. Violet:
                open gate. Dashed rings: distance within which the linear programme opens the gate.
                Lines: cells of the prototypes. ◇ ○ □: pooled vectors. Square framed in blue: the
                brush; click to place it.
              </p>
            </figure>
            <figure>
              <h4>Plan: mass from each pixel to each prototype</h4>
              <Plan app={app} />
              <p class="caption">
                Each map shows which share of a pixel's mass 1/n moves to the prototype, from 0 to
                1. The maps sum to 1. z is the prototype's share of the transported mass.
              </p>
            </figure>
          </div>
        </section>
        <Side app={app} />
      </div>
      <Part name="charts">
        <Charts app={app} />
      </Part>
      <p class="caption notice">{app.notice}</p>
      <Live text={app.live} />
    </div>
  </Hiding>
);

function BrushPanel({ app }: PartProps) {
  const { brush, canUndo, canRedo, theme } = app.shown.value,
    { editor } = app,
    { maps } = app.session.data.options,
    fill = (code: number) => editor.change(({ pixels }) => pixels.fill(code));
  return (
    <>
      <div class="pills brushes" role="group" aria-label="brush">
        {HUES.map(([hue, code], i) => (
          <button
            key={hue}
            data-brush={hue}
            title={`key ${i + 1}`}
            aria-pressed={hue === brush.hue}
            onClick={() => app.setBrush({ hue })}
          >
            <i style={`background: ${colourOf(code, theme)}`} />
            {hue}
          </button>
        ))}
      </div>
      <label class="purity">
        purity
        <input
          type="range"
          min={0.4}
          max={1}
          step={0.0125}
          value={brush.purity}
          aria-label="purity of the brush"
          title="Share of the colour; the two other colours share the rest"
          onInput={(e) => app.setBrush({ purity: Number(e.currentTarget.value) })}
        />
        <output>{brush.hue === "free" ? "free" : tidy(brush.purity)}</output>
      </label>
      <Pills
        pills={[1, 2, 3].map((n) => ({
          value: String(n),
          text: `${n}×${n}`,
          title: `brush of ${n} by ${n} pixels`,
        }))}
        value={String(brush.side)}
        onChange={(n) => app.setBrush({ side: Number(n) } as Partial<Brush>)}
      >
        <span class="pills">
          <button title="Undo (Ctrl+Z)" disabled={!canUndo} onClick={() => editor.undo()}>
            Undo
          </button>
          <button title="Redo (Ctrl+Y)" disabled={!canRedo} onClick={() => editor.redo()}>
            Redo
          </button>
          <button title="Paint all pixels with the brush" onClick={() => fill(editor.brush.code)}>
            Fill
          </button>
          <button title="Set all pixels to background" onClick={() => fill(0)}>
            Clear
          </button>
        </span>
      </Pills>
      <Menu
        label="map"
        offers={{ "": "Choose a map …", ...maps }}
        value=""
        onChange={(name) => {
          if (name)
            editor.change((state) => {
              state.pixels = [...maps[name].pixels];
            });
        }}
      />
    </>
  );
}

const CellText = ({ app }: PartProps) => (
  <p class="caption cell">{describeCell(app.shown.value, app.editor.state)}</p>
);

const PrototypeButtons = ({ app }: PartProps) => (
  <div class="pills">
    <button
      title="Add a prototype at the colour of the brush"
      disabled={app.editor.isFull}
      onClick={() => app.add()}
    >
      Add prototype
    </button>
    <button
      title="Remove the last touched prototype (Delete)"
      disabled={app.editor.state.prototypes.length < 2}
      onClick={() => app.editor.remove()}
    >
      Remove
    </button>
  </div>
);
