// Elements of a landscape: the marble's controls, the surface, its legend and the verdicts.
import type { Landscape } from "./landscape.tsx";
import { useComputed } from "@preact/signals";
import { tidy } from "../../../kit/dom.ts";
import { themedQuery } from "../../../kit/export.ts";
import { Key } from "../../../kit/panel/panel.tsx";

const HEAVIEST = 3, // as in pages/shared/plane/state.py
  TURN = Math.PI / 8; // radians of a button

export const Layout = ({ app }: { app: Landscape }) => (
  <>
    <div class="row-of">
      <button class="go" title="Release the marble at the scanning point" onClick={() => app.go()}>
        Release the marble
      </button>
      <Momentum app={app} />
      <FileLink app={app} />
    </div>
    <div class="space" ref={app.setSpace}>
      <div role="img" aria-label="energy of the scanning point as a surface" ref={app.setPlot} />
      <div class="turn">
        <button aria-label="turn left" title="turn left" onClick={() => app.turn(TURN)}>
          ⟲
        </button>
        <button aria-label="turn right" title="turn right" onClick={() => app.turn(-TURN)}>
          ⟳
        </button>
      </div>
    </div>
    <div class="below">
      height: loss
      <Key kind="slope">force (slope)</Key>
      <Key>loss = 0</Key>
      <Key kind="dashed">upper clamp</Key>
    </div>
    <p class="words" aria-live="polite">
      {app.words}
    </p>
    <p class="caption">{app.cut}</p>
  </>
);

function Momentum({ app: { mass, host } }: { app: Landscape }) {
  const text = useComputed(() => (mass.value ? `momentum ${tidy(mass.value)}` : "gradient flow"));
  return (
    <label title="0: gradient flow, m x″ + x′ = force">
      <input
        type="range"
        min={0}
        max={HEAVIEST}
        step={0.05}
        aria-label="momentum of the marble"
        value={mass}
        onInput={(e) => (mass.value = Number(e.currentTarget.value))}
        onChange={(e) => host.weigh(Number(e.currentTarget.value))}
      />
      <output>{text}</output>
    </label>
  );
}

// The address is renewed at each use, so that the file shows the current view.
function FileLink({ app: { host, page, there } }: { app: Landscape }) {
  const address = () =>
    there(`api/landscape/${page}/export.html?${themedQuery(host.query, host.theme)}`);
  const renew = ({ currentTarget }: { currentTarget: HTMLAnchorElement }) => {
    currentTarget.href = address();
  };
  return (
    <a
      class="button"
      download=""
      href={address()}
      onPointerDown={renew}
      onFocus={renew}
      onClick={renew}
    >
      HTML file
    </a>
  );
}
