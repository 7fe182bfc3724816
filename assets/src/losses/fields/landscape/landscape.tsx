// Energy of the scanning point as a surface with a rolling marble: next to the plane of one loss,
// or above the planes of two. Python makes the figure; plotly.js, loaded with the first landscape,
// draws it.
import type { Host, LandscapeAnswer, Marble } from "./types.ts";
import type { Camera, Drawn, Plotly } from "./plotly.ts";
import type { Place } from "../../../kit/types.ts";
import { render } from "preact";
import { signal } from "@preact/signals";
import { asset } from "../../../kit/address.ts";
import { el, still, styled } from "../../../kit/dom.ts";
import { everyFrame } from "../../../kit/figure/motion.ts";
import { Link, decode, socketAddress } from "../../../kit/socket.ts";
import { Layout } from "./layout.tsx";
import { loadPlotly } from "./plotly.ts";

const ROLLING = 2500, // ms of the marble's animation, whatever its simulated time
  SLOW = 40, // ms: figures that take longer are drawn only at rest
  NARROW = 620; // px: below this width two surfaces are stacked
const CONFIG = { displayModeBar: false, scrollZoom: false, responsive: false },
  NO_SOCKET = "The landscape needs a direct connection, which could not be opened.";

export class Landscape {
  readonly host: Host;
  readonly page: string; // of the exported file
  readonly box: HTMLElement;
  readonly words = signal(""); // verdicts
  readonly cut = signal(""); // statement about parts outside the figure
  readonly mass = signal(0); // of the marble
  private readonly pair: boolean;
  private readonly link: Link<object>;
  private readonly observer = new ResizeObserver(() => this.resize());
  private readonly ready: Promise<unknown>;
  private space: HTMLElement;
  private plot: HTMLElement;
  private id = 0;
  private answered = 0;
  private marbles: Marble[] = [];
  private stopRolling: (() => void) | undefined;
  private drawn: Drawn | undefined;
  private drawing = false;
  private took = 0; // ms that the last figure took
  private camera: Camera | undefined; // camera as the visitor turned it
  private next: LandscapeAnswer | null = null;
  private width: number | undefined; // of the last figure, px

  constructor(host: Host, { page, pair, mass }: { page: string; pair: boolean; mass: number }) {
    this.host = host;
    this.page = page;
    this.pair = pair;
    this.mass.value = mass;
    this.box = el("section", {
      class: pair ? "landscape pair" : "landscape",
      "aria-label": "landscape",
    });
    render(<Layout app={this} />, this.box);
    this.link = new Link(
      socketAddress(host.data, "api/landscape"),
      (buffer) => this.receive(decode(buffer)),
      () => (this.words.value = NO_SOCKET),
    );
    this.ready = styled(host.root, asset("losses/fields/landscape/landscape.css"));
  }

  setSpace = (space: HTMLElement | null) => void (this.space = space ?? this.space);
  setPlot = (plot: HTMLElement | null) => void (this.plot = plot ?? this.plot);

  /** Return the address of a path of this server. */
  there = (path: string) => new URL(this.host.data.base + path, location.href).href;

  /** Request the figure. With `roll` the gesture has ended and the marble starts. */
  ask(roll: boolean) {
    const { host } = this,
      { clientWidth: width } = this.box;
    if (!roll && this.took > SLOW) return;
    this.stop();
    this.link.send({
      id: ++this.id,
      ...host.landscapeOf(),
      roll,
      dark: host.theme === "dark",
      stacked: this.pair && width > 0 && width <= NARROW,
    });
  }

  private receive(answer: LandscapeAnswer) {
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.next = answer;
    if (!this.drawing) this.draw();
  }

  // Draw the newest answer, once the previous one is drawn.
  private async draw() {
    this.drawing = true;
    try {
      await this.ready;
      if (!el("canvas").getContext("webgl")) throw new TypeError("WebGL is off in this browser");
      const { plotly: version } = this.next as LandscapeAnswer;
      const Plotly = await loadPlotly(this.there(`api/landscape/plotly-${version}.js`));
      const answer = this.next as LandscapeAnswer;
      this.next = null;
      if (this.box.isConnected) await this.show(Plotly, answer);
    } catch (error) {
      this.next = null;
      this.words.value = `The landscape cannot be drawn: ${error instanceof Error ? error.message : error}.`;
    }
    this.drawing = false;
    if (this.next) this.draw();
  }

  private async show(Plotly: Plotly, { id, figure, verdicts, hidden }: LandscapeAnswer) {
    this.stop();
    const { clientWidth: width, clientHeight: height } = this.space;
    const layout: Record<string, unknown> = { ...figure.layout, width, height };
    for (const [name, scene] of Object.entries(layout))
      if (this.camera && name.startsWith("scene"))
        layout[name] = { ...(scene as object), camera: this.camera };
    const begun = performance.now(),
      drawn = await Plotly.react(this.plot, figure.data, layout, CONFIG);
    this.took = performance.now() - begun;
    if (!this.drawn) {
      this.drawn = drawn;
      this.observer.observe(this.space);
      drawn.on("plotly_click", (event) => this.clicked(event));
      drawn.on("plotly_relayout", (change) => this.syncCameras(change));
    }
    this.marbles = figure.marbles;
    if (verdicts.length) this.words.value = verdicts.join(" ");
    this.cut.value = hidden;
    this.plot.setAttribute("aria-label", `energy as a surface. ${verdicts.join(" ")} ${hidden}`);
    this.plot.dataset.seq = String(id);
    if (this.marbles.length) this.go();
  }

  // ---- marble
  /** Roll the marble from its start. */
  go() {
    this.stop();
    const last = (this.marbles[0]?.x.length ?? 0) - 1;
    if (last < 0 || !this.drawn) return;
    if (still()) return void this.place(last);
    const begun = performance.now();
    let placing = false;
    this.stopRolling = everyFrame((now) => {
      if (placing) return false;
      const k = Math.min(Math.floor((Math.max(now - begun, 0) / ROLLING) * (last + 1)), last);
      placing = true;
      this.place(k).finally(() => (placing = false));
      return k === last;
    });
  }

  // Place the marbles at frame k.
  private async place(k: number) {
    const { marbles } = this;
    const along = (axis: "x" | "y" | "z") => marbles.map((m) => [m[axis][k]]);
    await window.Plotly?.restyle(
      this.plot,
      { x: along("x"), y: along("y"), z: along("z") },
      marbles.map((m) => m.trace),
    );
    this.plot.dataset.frame = String(k);
  }

  private stop() {
    this.stopRolling?.();
  }

  // Place the marble where the visitor clicked on the surface.
  private clicked({
    points: [point],
  }: {
    points: { data: { type: string }; x: number; y: number }[];
  }) {
    if (point?.data.type !== "surface") return;
    const place: Place = [Number(point.x.toFixed(3)), Number(point.y.toFixed(3))];
    this.host.letGo(place);
  }

  // ---- camera
  // Apply the camera of one surface to both.
  private syncCameras(change: Record<string, Camera>) {
    const [first, second] = [change["scene.camera"], change["scene2.camera"]],
      camera = first ?? second;
    if (!camera) return;
    this.camera = camera;
    if (this.pair && !(first && second)) this.look(camera);
  }

  private look(camera: Camera) {
    window.Plotly?.relayout(this.plot, {
      "scene.camera": camera,
      ...(this.pair ? { "scene2.camera": camera } : {}),
    });
  }

  /** Turn the surfaces by an angle in radians. */
  turn(by: number) {
    const camera = this.drawn?.layout.scene.camera;
    if (!camera) return;
    const { x, y, z } = camera.eye,
      [cos, sin] = [Math.cos(by), Math.sin(by)];
    this.look({ ...camera, eye: { x: cos * x - sin * y, y: sin * x + cos * y, z } });
  }

  private resize() {
    const { clientWidth: width, clientHeight: height } = this.space;
    const was = this.width;
    this.width = width;
    if (!width || was === undefined || was === width) return;
    if (this.pair && was > NARROW !== width > NARROW) this.ask(true);
    else window.Plotly?.relayout(this.plot, { width, height });
  }
  close() {
    this.stop();
    this.observer.disconnect();
    this.link.close();
    if (this.drawn) window.Plotly?.purge(this.plot);
    render(null, this.box);
    this.box.remove();
  }
}
