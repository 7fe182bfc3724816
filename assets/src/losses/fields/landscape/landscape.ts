// Energy of the scanning point as a surface with a rolling marble: next to the plane of one loss,
// or above the planes of two. Python makes the figure; plotly.js, loaded with the first landscape,
// draws it.
import { asset } from "../../../kit/address.ts";
import type { Camera, Drawn, Host, LandscapeAnswer, Marble, Plotly } from "./types.ts";
import type { Place } from "../../../kit/types.ts";
import { keyMark } from "../../../kit/controls.ts";
import { div, el, setText, styled, tidy } from "../../../kit/dom.ts";
import { Link, decode, socketAddress } from "../../../kit/socket.ts";

const HEAVIEST = 3, // as in pages/shared/plane/state.py
  ROLLING = 2500, // ms of the marble's animation, whatever its simulated time
  SLOW = 40, // ms: figures that take longer are drawn only at rest
  TURN = Math.PI / 8,
  NARROW = 620; // px: below this width two surfaces are stacked
const CONFIG = { displayModeBar: false, scrollZoom: false, responsive: false };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

let plotly: Promise<Plotly> | undefined;
const plotlyReady = (href: string) =>
  (plotly ??= new Promise((resolve, reject) => {
    const script = el("script");
    script.src = href;
    script.onload = () =>
      window.Plotly ? resolve(window.Plotly) : reject(new TypeError("plotly.js is missing"));
    script.onerror = () => {
      plotly = undefined; // load again with the next landscape
      reject(new TypeError("plotly.js could not be loaded"));
    };
    document.head.append(script);
  }));

export class Landscape {
  host: Host;
  pair: boolean;
  there: (path: string) => string;
  space: HTMLDivElement;
  box: HTMLElement;
  link: Link<object>;
  observer: ResizeObserver;
  ready: Promise<any[]>;
  seq = 0;
  answered = 0;
  rolling: number | undefined;
  marbles: Marble[] = [];
  drawn: Drawn | undefined;
  drawing = false;
  took = 0; // ms that the last figure took
  camera: Camera | undefined; // camera as the visitor turned it
  next: LandscapeAnswer | null = null;
  plot = el("div", { role: "img", "aria-label": "energy of the scanning point as a surface" });
  words = el("p", { class: "words", "aria-live": "polite" });
  cut = el("p", { class: "caption" });
  weight = el("input", {
    type: "range",
    min: 0,
    max: HEAVIEST,
    step: 0.05,
    "aria-label": "momentum of the marble",
  });
  weightText = el("output");

  constructor(host: Host, { page, pair, mass }: { page: string; pair: boolean; mass: number }) {
    this.host = host;
    this.pair = pair;
    const { data } = host;
    const assetUrl = (path: string) => new URL(data.base + path, location.href).href;
    this.there = assetUrl;
    const file = el("a", { class: "button", download: "" }, "HTML file");
    for (const event of ["pointerdown", "focus", "click"])
      file.addEventListener(event, () => {
        const dark = host.theme === "dark" ? "&dark=1" : "";
        file.href = assetUrl(`api/landscape/${page}/export.html?${host.query}${dark}`);
      });
    file.href = assetUrl(`api/landscape/${page}/export.html?${host.query}`);
    this.weight.addEventListener("input", () => this.weigh(Number(this.weight.value)));
    this.weight.addEventListener("change", () => host.weigh(Number(this.weight.value)));
    this.weigh(mass);
    const turn = (text: string, by: number, name: string) =>
      el("button", { "aria-label": name, title: name, onclick: () => this.turn(by) }, text);
    this.space = div(
      "space",
      this.plot,
      div("turn", turn("⟲", TURN, "turn left"), turn("⟳", -TURN, "turn right")),
    );
    this.box = el(
      "section",
      { class: pair ? "landscape pair" : "landscape", "aria-label": "landscape" },
      div(
        "row-of",
        el(
          "button",
          {
            class: "go",
            title: "Release the marble at the scanning point",
            onclick: () => this.go(),
          },
          "Release the marble",
        ),
        el("label", { title: "0: gradient flow, m x″ + x′ = force" }, this.weight, this.weightText),
        file,
      ),
      this.space,
      div(
        "below",
        "height: loss",
        keyMark("slope", "force (slope)"),
        keyMark("", "loss = 0"),
        keyMark("dashed", "upper clamp"),
      ),
      this.words,
      this.cut,
    );
    this.link = new Link(
      socketAddress(data, "api/landscape"),
      (buffer) => this.receive(decode(buffer) as LandscapeAnswer),
      () =>
        setText(this.words, "The landscape needs a direct connection, which could not be opened."),
    );
    this.observer = new ResizeObserver(() => this.resize());
    this.ready = styled(host.root, asset("losses/fields/landscape/landscape.css"));
  }

  weigh(mass: number) {
    this.weight.value = String(mass);
    setText(this.weightText, mass ? `momentum ${tidy(mass)}` : "gradient flow");
  }

  get narrow() {
    return this.pair && this.box.clientWidth > 0 && this.box.clientWidth <= NARROW;
  }

  // Request the figure. With `roll` the gesture has ended and the marble starts.
  ask(roll: boolean) {
    const { host } = this;
    if (!roll && this.took > SLOW) return;
    this.stop();
    this.link.send({
      id: ++this.seq,
      ...host.landscapeOf(),
      roll,
      dark: host.theme === "dark",
      stacked: this.narrow,
    });
  }

  receive(answer: LandscapeAnswer) {
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.next = answer;
    if (!this.drawing) this.draw();
  }

  // Draw the newest answer, once the previous one is drawn.
  async draw() {
    this.drawing = true;
    try {
      await this.ready;
      if (!el("canvas").getContext("webgl")) throw new TypeError("WebGL is off in this browser");
      const { plotly: version } = this.next as LandscapeAnswer;
      const Plotly = await plotlyReady(this.there(`api/landscape/plotly-${version}.js`));
      const answer = this.next as LandscapeAnswer;
      this.next = null;
      if (this.box.isConnected) await this.show(Plotly, answer);
    } catch (error) {
      this.next = null;
      setText(
        this.words,
        `The landscape cannot be drawn: ${error instanceof Error ? error.message : error}.`,
      );
    }
    this.drawing = false;
    if (this.next) this.draw();
  }

  async show(Plotly: Plotly, { id, figure, verdicts, hidden }: LandscapeAnswer) {
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
    if (verdicts.length) setText(this.words, verdicts.join(" "));
    setText(this.cut, hidden);
    this.plot.setAttribute("aria-label", `energy as a surface. ${verdicts.join(" ")} ${hidden}`);
    this.plot.dataset.seq = String(id);
    if (this.marbles.length) this.go();
  }

  // ---- marble
  go() {
    this.stop();
    const frames = this.marbles[0]?.x.length ?? 0;
    if (!frames || !this.drawn) return;
    if (still()) return void this.place(frames - 1);
    const begun = performance.now();
    const step = async () => {
      const k = Math.min(Math.floor(((performance.now() - begun) / ROLLING) * frames), frames - 1);
      await this.place(k);
      if (this.rolling === undefined) return; // stopped meanwhile
      this.rolling = k < frames - 1 ? requestAnimationFrame(step) : undefined;
    };
    this.rolling = requestAnimationFrame(step);
  }

  // k: index of a frame
  async place(k: number) {
    const { marbles } = this;
    const along = (axis: "x" | "y" | "z") => marbles.map((m) => [m[axis][k]]);
    await window.Plotly?.restyle(
      this.plot,
      { x: along("x"), y: along("y"), z: along("z") },
      marbles.map((m) => m.trace),
    );
    this.plot.dataset.frame = String(k);
  }

  stop() {
    cancelAnimationFrame(this.rolling ?? 0);
    this.rolling = undefined;
  }

  // Place the marble where the visitor clicked on the surface.
  clicked({ points: [point] }: { points: { data: { type: string }; x: number; y: number }[] }) {
    if (point?.data.type !== "surface") return;
    const place: Place = [Number(point.x.toFixed(3)), Number(point.y.toFixed(3))];
    this.host.letGo(place);
  }

  // ---- camera Apply the camera of one surface to both.
  syncCameras(change: Record<string, Camera>) {
    const [first, second] = [change["scene.camera"], change["scene2.camera"]],
      camera = first ?? second;
    if (!camera) return;
    this.camera = camera;
    if (this.pair && !(first && second)) this.look(camera);
  }

  look(camera: Camera) {
    window.Plotly?.relayout(this.plot, {
      "scene.camera": camera,
      ...(this.pair ? { "scene2.camera": camera } : {}),
    });
  }

  // by: in radians
  turn(by: number) {
    const camera = this.drawn?.layout.scene.camera;
    if (!camera) return;
    const { x, y, z } = camera.eye,
      [cos, sin] = [Math.cos(by), Math.sin(by)];
    this.look({ ...camera, eye: { x: cos * x - sin * y, y: sin * x + cos * y, z } });
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.space;
    const was = this.wide;
    this.wide = width;
    if (!width || was === undefined || was === width) return;
    if (this.pair && was > NARROW !== width > NARROW) this.ask(true);
    else window.Plotly?.relayout(this.plot, { width, height });
  }
  wide: number | undefined;

  close() {
    this.stop();
    this.observer.disconnect();
    this.link.close();
    if (this.drawn) window.Plotly?.purge(this.plot);
    this.box.remove();
  }
}
