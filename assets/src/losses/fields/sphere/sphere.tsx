// Circle and sphere: owns points, rotation and drawing; requests energies and forces from Python,
// and reports changes of the loss to Streamlit.
import type { Known, On, SphereAnswer, SphereData, SphereRequest, Scene } from "./types.ts";
import type { Attributes, Place, Point } from "../../../kit/types.ts";
import { Asking } from "../../../kit/asking.ts";
import { defineComponent, paintScale } from "../../../kit/component.ts";
import {
  div,
  drawing,
  el,
  readouts,
  save,
  setText,
  show,
  stateOf,
  still,
  tidy,
  writeAddress,
} from "../../../kit/dom.ts";
import { INK, POINTS, rampColour } from "../../../kit/colours.ts";
import { Presets, keyMark, lossPanel, switches } from "../../../kit/controls.ts";
import { pointHandles, pointRows } from "../../../kit/points.ts";
import { exportLinks } from "../../../kit/export.ts";
import { presentButton } from "../../../kit/present/present.ts";
import { arrow, enlarged, follow, within } from "../../../kit/hand.ts";
import { fit } from "../../../kit/screen.ts";
import { Surface, FILL } from "./surface.ts";
import { direction, grasp, paintGlobe, place, projector, viewFrom } from "./globe.ts";
import { angleAt, onCircle, paintCircle } from "./circle.ts";
import { mapFrame, mapRasters, paintMap, wrap } from "./angle_map.ts";

const SHOWN: ["region" | "arrows" | "radial", text: string, title: string][] = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["arrows", "force arrows", "Tangential force on the moved point at each position"],
  ["radial", "radial parts", "Radial component of each force, which normalisation removes"],
];
const SWING = 20; // degrees by which the sphere swings to either side at first
const degrees = (x: number) => `${x.toFixed(1)}°`.replace("-", "−");

// size in CSS pixels; 0 before it is shown
export type Sized = HTMLCanvasElement & { size: number };

class Sphere extends Asking<SphereData, SphereRequest, SphereAnswer> {
  scene: Scene;
  states: Presets<Known>;
  reportedLoss: string;
  surfaceCanvas: HTMLCanvasElement & { size: number };
  globe: HTMLCanvasElement & { size: number };
  circle: HTMLCanvasElement & { size: number };
  map: HTMLCanvasElement & { size: number };
  handles = pointHandles();
  dot = el("button", {
    class: "handle",
    "data-point": "map",
    title: "Drag both angles, or change them with the arrow keys",
  });
  globeFrame: HTMLDivElement;
  circleFrame: HTMLDivElement;
  mapFrame: HTMLDivElement;
  views = div("views");
  surface: Surface;
  switch = (["sphere", "circle"] as On[]).map((on) =>
    el(
      "button",
      {
        onclick: () => {
          this.touch();
          this.states.press();
          this.scene.on = on;
          this.panel();
          this.rest();
        },
      },
      on === "sphere" ? "Sphere" : "Circle",
    ),
  );
  scaleBar: HTMLCanvasElement & { size: number };
  scaleText = el("span");
  keys = {
    clamp: keyMark("dashed", "upper clamp"),
    radial: keyMark("dotted", "radial, removed"),
    back: keyMark("hollow", "behind the sphere"),
    sweep: keyMark("sweep", "what the ring shows"),
  };
  readout = div("readout");
  cells: HTMLTableCellElement[][];
  table: HTMLTableElement;
  live = el("div", { class: "hidden", "aria-live": "polite" });
  notice = div("notice");
  side = div("panel");

  painted = 0;
  answer: SphereAnswer | undefined;
  onSphere: SphereAnswer | undefined; // last answer for the sphere
  angles: { answer: SphereAnswer; key: string } | undefined; // last answer with the map of both angles
  requestedMap = ""; // key of the requested map
  maps: OffscreenCanvas[] | undefined;
  turning: object | null = null;
  greeting: object | null = null;
  hand: HTMLElement | null = null;
  linking: number | undefined; // number of the request whose link is written
  rows: ReturnType<typeof pointRows> | undefined;

  constructor(root: ParentNode, data: SphereData) {
    super(root, data, { api: "api/sphere", styles: "losses/fields/sphere/sphere.css" });
    this.scene = structuredClone(data.scene);
    this.states = new Presets(data.states, (i) => this.show(i));
    this.reportedLoss = this.lossKey(data.scene);
  }

  onReady(data: SphereData) {
    this.onTheme();
    this.observer.observe(this.views);
    this.panel();
    this.rest(false);
    if (data.idle && !still()) this.greet();
  }

  // ---- elements
  dom() {
    const canvas = (attributes: Attributes = {}) =>
      Object.assign(el("canvas", attributes), { size: 0 });
    this.surfaceCanvas = canvas({ "aria-hidden": "true" });
    this.globe = canvas({
      class: "turn",
      role: "img",
      tabindex: "0",
      title: "Drag to rotate, or use the arrow keys",
    });
    this.circle = canvas({ role: "img" });
    this.map = canvas({ role: "img" });
    this.globeFrame = div("frame", this.surfaceCanvas, this.globe);
    this.circleFrame = div("frame", this.circle);
    this.mapFrame = div("frame", this.map, this.dot);
    this.surface = new Surface(this.surfaceCanvas);
    this.views.addEventListener("pointermove", () => {
      if (this.greeting) this.touch();
    });
    this.globe.addEventListener("pointerdown", (e) => this.rotate(e));
    this.globe.addEventListener("keydown", (e) => this.turn(e));
    for (const name of [...POINTS, "map"] as (Point | "map")[]) {
      const button = name === "map" ? this.dot : this.handles[name];
      button.addEventListener("pointerdown", (e) => this.drag(e, name));
      button.addEventListener("keydown", (e) => this.nudge(e, name));
    }
    const states = { class: "pills", role: "group", "aria-label": "states" };
    this.scaleBar = canvas({ width: 110, height: 1 });
    this.cells = POINTS.map((name) => [
      el("td", { "data-readout": `tangential ${name}` }),
      el("td", { "data-readout": `radial ${name}` }),
      el("td"),
    ]);
    this.table = el(
      "table",
      { "aria-label": "forces on the three points" },
      el(
        "tr",
        {},
        el("th", {}, "force on"),
        el("th", { title: "tangential component, which moves the point" }, "tangential"),
        el(
          "th",
          { title: "radial component (outward positive), which normalisation removes" },
          "radial",
        ),
        el("th", { title: "radial share of the squared force" }, "removed"),
      ),
      ...POINTS.map((name, i) => el("tr", {}, el("th", { scope: "row" }, name), ...this.cells[i])),
    );
    return div(
      "lab",
      div(
        "stage",
        div(
          "left",
          div(
            "top",
            el("div", { class: "switch", role: "group", "aria-label": "surface" }, ...this.switch),
            ...(this.hidden.has("presets") ? [] : [el("div", states, ...this.states.buttons)]),
          ),
          this.views,
          this.states.text,
          div(
            "below",
            el("span", { class: "bar" }, "loss 0", this.scaleBar, this.scaleText),
            keyMark("", "loss = 0"),
            this.keys.clamp,
            keyMark("hatched", "no force"),
            this.keys.radial,
            this.keys.back,
            this.keys.sweep,
          ),
          div("numbers", this.readout, this.table),
          this.notice,
          this.live,
        ),
        this.side,
      ),
    );
  }

  panel() {
    const sphere = this.scene.on === "sphere";
    this.views.className = `views ${sphere ? "globe" : "circle"}`;
    this.views.replaceChildren(...(sphere ? [this.globeFrame] : [this.circleFrame, this.mapFrame]));
    (sphere ? this.globeFrame : this.circleFrame).append(...Object.values(this.handles));
    this.switch.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(sphere === (i === 0))),
    );
    this.keys.back.style.display = sphere ? "" : "none";
    this.keys.sweep.style.display = sphere ? "none" : "";
    this.states.buttons.forEach((button, i) => {
      button.hidden = !this.states.offers[i][this.scene.on];
    });
    const sections = lossPanel(this.schema, this.scene, {
      hidden: this.hidden,
      onInput: () => {
        this.touch();
        this.move();
      },
      onRest: () => this.rest(),
      onLoss: () => {
        this.touch();
        this.panel();
        this.rest();
      },
    });
    this.rows = pointRows(INK, {
      axes: sphere ? ["longitude °", "latitude °"] : ["angle °"],
      space: this.scene.on,
      reach: 3600,
      onProbe: (name) => {
        this.touch();
        this.scene.probe = name;
        this.rest();
      },
      onMove: (name, axis, x) => {
        this.touch();
        this.states.press();
        this.set(
          name,
          this.scene[name].map((v, i) => (i === axis ? x : v)),
        );
        this.rest();
        return this.scene[name];
      },
    });
    const shown = switches(this.scene, SHOWN, (name, on) => {
      this.touch();
      this.scene[name] = on;
      this.rest();
    });
    this.side.replaceChildren(
      ...(this.hidden.has("loss") ? sections.slice(1) : sections),
      ...this.section("points", "Points", this.rows.grid),
      ...this.section("shown", "Shown", shown),
      ...this.section(
        "take",
        "Export",
        el(
          "div",
          { class: "pills" },
          ...presentButton(this),
          el(
            "button",
            { onclick: () => this.png(), title: "Save the figure at twice its size" },
            "Save PNG",
          ),
          ...exportLinks(
            this.data.base,
            "sphere",
            () => `${this.answer?.link ?? ""}${this.theme === "dark" ? "&dark=1" : ""}`,
          ),
        ),
      ),
    );
    this.resize();
    this.sync();
  }

  show(index: number) {
    this.touch();
    Object.assign(this.scene, structuredClone(this.states.offers[index][this.scene.on]));
    this.states.press(index);
    if (this.scene.on === "sphere") this.face();
    this.panel();
    this.rest();
  }

  // Rotate the sphere so that the triplet faces the viewer.
  face() {
    const middle = POINTS.map((name) => direction(this.scene[name])).reduce((a, b) =>
      a.map((x, i) => x + b[i]),
    );
    const target =
      Math.hypot(...middle) > 0.2
        ? place(middle)
        : [this.scene.anchor[0] + 40, this.scene.anchor[1]];
    const end = [wrap(target[0]), Math.min(Math.max(target[1], -55), 55)],
      start = [...this.scene.eye],
      by = [wrap(end[0] - start[0]), end[1] - start[1]];
    if (still()) {
      this.scene.eye = end;
      return;
    }
    const begin = performance.now(),
      token = (this.turning = {});
    const step = (now: number) => {
      if (this.turning !== token) return;
      const t = Math.min((now - begin) / 500, 1),
        s = t * t * (3 - 2 * t);
      this.scene.eye = [wrap(start[0] + s * by[0]), start[1] + s * by[1]].map((x) =>
        Number(x.toFixed(2)),
      );
      this.sync();
      if (t < 1) return requestAnimationFrame(step);
      this.turning = null;
      return this.rest();
    };
    requestAnimationFrame(step);
  }

  // ---- messages from Python
  onTheme() {
    paintScale(this.scaleBar, (t) => rampColour(t, this.theme));
    this.paintFigures();
    this.sync();
  }

  onAnswer(answer: SphereAnswer) {
    this.answer = answer;
    if (answer.map) this.angles = { answer, key: this.requestedMap };
    if (answer.on === "sphere") this.onSphere = answer;
    this.paintFigures(answer);
    this.numbers(answer);
    if (this.linking === answer.id) this.address(answer.link);
    this.draw();
  }

  paintFigures(fresh?: SphereAnswer) {
    if (this.onSphere && (!fresh || fresh.on === "sphere"))
      this.surface.load(this.onSphere, this.theme, this.scene.region);
    if (this.angles && (!fresh || fresh.map))
      this.maps = mapRasters(this.angles.answer, this.theme);
  }

  lossKey(scene = this.scene) {
    return JSON.stringify([scene.loss, scene.hyper]);
  }

  ask(fine: boolean) {
    const { scene } = this,
      key = this.lossKey() + scene.probe,
      map = scene.on === "circle" && this.angles?.key !== key;
    if (map) this.requestedMap = key;
    this.link.send({ id: ++this.seq, scene, fine, map });
    return this.seq;
  }

  // Return the link of the current state: Python's query, with the parameters that are not part of
  // the scene.
  address(query: string) {
    const text = new URLSearchParams(query).toString().replaceAll("%2C", ",");
    writeAddress(text, ["hide", "socket", "embed"]);
  }

  numbers(f: SphereAnswer) {
    const rows: [string, string][] = [
      ["loss", show(f.energy)],
      ["before clamp", show(f.raw)],
      ["triplet", stateOf(f)],
      ["angle A–P", degrees(f.angles.ap)],
      ["angle A–N", degrees(f.angles.an)],
      ["angle P–N", degrees(f.angles.pn)],
      ["d(A,P)", show(f.edges.ap)],
      ["d(A,N)", show(f.edges.an)],
      ["d(P,N)", show(f.edges.pn)],
    ];
    readouts(this.readout, rows);
    const cells: [Point, number, number, string][] = POINTS.map((name, i) => {
      const moving = Math.hypot(...f.tangential[i]),
        radial = f.radial[i],
        all = Math.hypot(moving, radial);
      return [
        name,
        moving,
        radial,
        all ? `${((100 * radial * radial) / (all * all)).toFixed(0)} %` : "–",
      ];
    });
    cells.forEach(([, moving, radial, share], i) =>
      [show(moving), show(radial), share].forEach((text, k) => setText(this.cells[i][k], text)),
    );
    this.scaleText.textContent = `≥ ${Number(f.scale.toPrecision(3))}`;
    this.keys.clamp.style.display = f.m2 === null ? "none" : "";
    this.keys.radial.style.display = this.scene.radial ? "" : "none";
    this.notice.textContent = this.slower;
    const where = POINTS.map(
      (name) =>
        `${name} at ${this.scene[name]
          .slice(0, f.on === "sphere" ? 2 : 1)
          .map((x) => degrees(x))
          .join(", ")}`,
    ).join("; ");
    const forces = cells
      .map(([name, moving, radial]) => `${name} ${show(moving)} tangential, ${show(radial)} radial`)
      .join("; ");
    const text = `${where}. Loss ${show(f.energy)}, ${rows[2][1]}. Forces: ${forces}.`;
    this.globe.setAttribute(
      "aria-label",
      `Unit sphere; colour shows the loss at each position of the ${this.scene.probe}. ${text}`,
    );
    this.circle.setAttribute(
      "aria-label",
      `Unit circle; the ring shows the loss at each position of the ${this.scene.probe}. ${text}`,
    );
    this.map.setAttribute(
      "aria-label",
      `Map of the loss over both angles. P is ${degrees(wrap(this.scene.positive[0] - this.scene.anchor[0]))} from A, N ${degrees(wrap(this.scene.negative[0] - this.scene.anchor[0]))}; loss ${show(f.energy)}.`,
    );
  }

  // ---- drawing
  // scale: canvas pixels per CSS pixel
  resize(scale?: number) {
    const shown = [this.globe, this.circle, this.map].filter((canvas) => canvas.clientWidth);
    fit(shown, scale);
    for (const canvas of shown) canvas.size = canvas.clientWidth;
    this.sync();
  }

  // A resolution above the screen's is used only at rest.
  get busy() {
    return Boolean(this.greeting || this.turning || this.hand);
  }

  paint(crisp?: boolean) {
    const { scene, theme, answer } = this,
      main = scene.on === "sphere" ? this.globe : this.circle;
    if (!main.size) return;
    this.placeHandles();
    if (scene.on === "sphere") {
      const { size } = this.globe,
        scale = (crisp ?? !this.busy) ? this.globe.width / size : Math.min(1, 720 / size);
      this.surface.draw(viewFrom(scene.eye), Math.round(size * scale), scale);
      paintGlobe(drawing(this.globe), this.globe.size, scene, this.onSphere, theme);
    } else {
      paintCircle(
        drawing(this.circle),
        this.circle.size,
        scene,
        answer?.on === "circle" ? answer : null,
        theme,
      );
      if (this.map.size)
        paintMap(drawing(this.map), this.map.size, scene, this.angles?.answer, this.maps, theme);
    }
    this.painted += 1;
    main.dataset.painted = String(this.painted);
    if (answer?.on === scene.on) main.dataset.seq = String(answer.id);
  }

  // Update boxes at once; handles wait for the figure, so that no handle is ahead of its point.
  sync() {
    if (!this.rows) return;
    const { scene } = this;
    if (!(scene.on === "sphere" ? this.globe : this.circle).size) return;
    this.rows.show(scene, this.theme);
    this.draw();
  }

  placeHandles() {
    const { scene } = this,
      sphere = scene.on === "sphere";
    const { size } = sphere ? this.globe : this.circle;
    const at = sphere ? projector(viewFrom(scene.eye), size) : null;
    for (const name of POINTS) {
      const [x, y, z = 1] = at ? at(direction(scene[name])) : onCircle(size, scene[name][0]),
        handle = this.handles[name];
      handle.style.transform = `translate(${x}px, ${y}px)`;
      handle.style.zIndex = String(sphere && z < 0 ? 1 : 2);
      handle.setAttribute(
        "aria-label",
        `${name} at ${scene[name]
          .slice(0, sphere ? 2 : 1)
          .map(tidy)
          .join(", ")} degrees${sphere && z < 0 ? ", behind the sphere" : ""}`,
      );
    }
    if (!sphere && this.map.size) {
      const both = [
          wrap(scene.positive[0] - scene.anchor[0]),
          wrap(scene.negative[0] - scene.anchor[0]),
        ],
        [x, y] = mapFrame(this.map.size).to(both);
      this.dot.style.transform = `translate(${x}px, ${y}px)`;
      this.dot.setAttribute(
        "aria-label",
        `P ${tidy(both[0])} and N ${tidy(both[1])} degrees from A`,
      );
    }
  }

  // ---- gestures
  touch() {
    this.handles.anchor.classList.remove("pulse");
    this.turning = null;
    if (!this.greeting) return;
    this.greeting = null;
    this.scene.eye = this.scene.eye.map((x) => Number(x.toFixed(1)));
  }

  set(name: Point, [lon, lat]: Place) {
    this.scene[name] = [
      Number(wrap(lon).toFixed(2)),
      Number(Math.min(Math.max(lat, -90), 90).toFixed(2)),
    ];
  }

  move() {
    this.sync();
    this.ask(false);
  }

  // End a gesture: request the fine figure and the link, and report a changed loss to Streamlit.
  rest(linked = true) {
    this.sync();
    const id = this.ask(true);
    if (linked) this.linking = id;
    this.tellSoon(() => {
      if (this.answer) this.live.textContent = `loss ${show(this.answer.energy)}`;
      if (!linked || this.lossKey() === this.reportedLoss) return;
      this.reportedLoss = this.lossKey();
      this.setState("scene", structuredClone(this.scene));
    }, 150);
  }

  drag(event: PointerEvent, name: Point | "map") {
    event.preventDefault();
    this.touch();
    const handle = event.currentTarget as HTMLElement,
      canvas = name === "map" ? this.map : this.scene.on === "sphere" ? this.globe : this.circle;
    handle.focus();
    const [px, py] = within(event, handle),
      dx = px - handle.clientWidth / 2,
      dy = py - handle.clientHeight / 2;
    const view = viewFrom(this.scene.eye),
      front =
        this.scene.on === "sphere" &&
        projector(view, canvas.size)(direction(name === "map" ? [0, 0] : this.scene[name]))[2] >= 0;
    this.follow(
      event,
      handle,
      (e) => {
        this.states.press();
        const [cx, cy] = within(e, canvas),
          x = cx - dx,
          y = cy - dy;
        if (name === "map") this.setBoth(mapFrame(canvas.size).from([x, y]));
        else if (this.scene.on === "sphere")
          this.set(name, place(grasp(view, canvas.size, x, y, front)));
        else this.set(name, [angleAt(canvas.size, x, y), this.scene[name][1]]);
        this.move();
      },
      () => this.rest(),
    );
  }

  setBoth([p, n]: Place) {
    const clamped = (x: number) => Math.min(Math.max(x, -180), 180),
      from = this.scene.anchor[0];
    this.set("positive", [from + clamped(p), this.scene.positive[1]]);
    this.set("negative", [from + clamped(n), this.scene.negative[1]]);
  }

  rotate(event: PointerEvent) {
    if (event.button) return;
    this.touch();
    const start = [...this.scene.eye],
      k = 180 / Math.PI / (FILL * this.globe.size * enlarged(this.globe)),
      { clientX, clientY } = event,
      trail: number[][] = [];
    this.follow(
      event,
      this.globe,
      (e) => {
        this.look([start[0] - (e.clientX - clientX) * k, start[1] + (e.clientY - clientY) * k]);
        trail.push([performance.now(), ...this.scene.eye]);
      },
      () => this.coast(trail),
    );
  }

  look([lon, lat]: Place) {
    this.scene.eye = [
      Number(wrap(lon).toFixed(2)),
      Number(Math.min(Math.max(lat, -89), 89).toFixed(2)),
    ];
    this.sync();
  }

  // Let the sphere keep rotating for a moment after a swing.
  coast(trail: number[][]) {
    const last = trail.at(-1),
      earlier = trail.find(([t]) => last && last[0] - t < 80);
    const span = last && earlier ? last[0] - earlier[0] : 0;
    if (still() || !last || !earlier || span < 8 || performance.now() - last[0] > 60)
      return this.rest();
    let speed = [wrap(last[1] - earlier[1]) / span, (last[2] - earlier[2]) / span],
      before = performance.now();
    const token = (this.turning = {});
    const step = (now: number) => {
      if (this.turning !== token) return;
      const dt = Math.min(now - before, 50);
      before = now;
      this.look(this.scene.eye.map((x, i) => x + speed[i] * dt));
      speed = speed.map((x) => x * Math.exp(-dt / 160));
      if (Math.hypot(...speed) > 0.004) return requestAnimationFrame(step);
      this.turning = null;
      return this.rest();
    };
    requestAnimationFrame(step);
  }

  follow(
    event: PointerEvent,
    target: HTMLElement,
    act: (event: PointerEvent) => void,
    end: () => void,
  ) {
    this.hand = target;
    follow(event, target, act, (moved) => {
      this.hand = null;
      if (moved) end();
    });
  }

  step(event: KeyboardEvent) {
    const step = arrow(event);
    if (step) this.touch();
    return step;
  }

  nudge(event: KeyboardEvent, name: Point | "map") {
    const step = this.step(event);
    if (!step) return;
    this.states.press();
    const { scene } = this;
    if (name === "map")
      this.setBoth([
        wrap(scene.positive[0] - scene.anchor[0]) + step[0],
        wrap(scene.negative[0] - scene.anchor[0]) + step[1],
      ]);
    else if (scene.on === "sphere")
      this.set(
        name,
        scene[name].map((x, i) => x + step[i]),
      );
    // right and down: clockwise
    else this.set(name, [scene[name][0] - step[0] + step[1], scene[name][1]]);
    this.move();
    this.restSoon();
  }

  turn(event: KeyboardEvent) {
    const step = this.step(event);
    if (!step) return;
    this.look([this.scene.eye[0] + 3 * step[0], this.scene.eye[1] + 3 * step[1]]);
    this.restSoon();
  }

  get motions() {
    const eye = [...this.scene.eye];
    return this.scene.on === "circle"
      ? []
      : [
          {
            title: "one turn of the sphere",
            pose: (share: number) => {
              this.touch();
              this.look([eye[0] + 360 * share, eye[1]]);
            },
            end: () => {
              this.look(eye);
              this.rest();
            },
          },
        ];
  }

  // Rotate the sphere slowly at first, until the first input.
  greet() {
    this.handles.anchor.classList.add("pulse");
    const token = (this.greeting = {}),
      start = this.scene.eye[0];
    let begin = null;
    const step = (now: number) => {
      if (this.greeting !== token || !this.root.isConnected) return;
      begin ??= now;
      this.scene.eye = [wrap(start + SWING * Math.sin((now - begin) / 3500)), this.scene.eye[1]];
      this.sync();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  // ---- export
  png() {
    const shown =
        this.scene.on === "sphere"
          ? [[this.surfaceCanvas, this.globe]]
          : [[this.circle], [this.map]],
      main = this.scene.on === "sphere" ? this.globe : this.circle;
    this.resize(2);
    this.paint(true);
    const side = main.width,
      foot = 60,
      canvas = el("canvas", { width: side * shown.length, height: side + foot }),
      ctx = drawing(canvas);
    ctx.fillStyle = INK[this.theme].page;
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    shown.forEach((layers, i) =>
      layers.forEach((layer) => ctx.drawImage(layer, i * side, 0, side, side)),
    );
    ctx.fillStyle = INK[this.theme].text;
    ctx.font = "22px system-ui, sans-serif";
    const hyper = Object.entries(this.scene.hyper)
      .filter(([, v]) => v !== null)
      .map(([k, v]) => `${k} = ${v}`)
      .join(", ");
    ctx.fillText(
      `${this.schema.losses[this.scene.loss].title}${hyper && ` (${hyper})`}: loss ${show(this.answer?.energy)}`,
      20,
      side + 36,
      canvas.width - 40,
    );
    this.resize();
    this.paint();
    canvas.toBlob((blob) => save(`${this.scene.on}.png`, blob));
  }

  close() {
    this.greeting = this.turning = null;
    super.close();
  }
}

export const { render, unmount } = defineComponent(Sphere);
