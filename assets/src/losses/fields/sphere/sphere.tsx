// Circle and sphere: owns points and rotation; requests energies and forces from Python, and reports
// changes of the loss to Streamlit.
import type { SphereAnswer, SphereData, SphereRequest, Scene } from "./types.ts";
import type { Phase } from "../../../kit/figure/spec.ts";
import type { Places, Rows } from "../../../kit/panel/panel.tsx";
import type { Session, SessionPage } from "../../../kit/session.ts";
import type { Motion, Place, Point } from "../../../kit/types.ts";
import { signal } from "@preact/signals";
import { POINTS } from "../../../kit/colours.ts";
import { still, writeAddress } from "../../../kit/dom.ts";
import { clamp, mountPanel } from "../../../kit/panel/panel.tsx";
import { defineSession } from "../../../kit/session.ts";
import { mapRasters, wrap } from "./angle_map.ts";
import { createCircle, createGlobe, createMap } from "./figures.ts";
import { Layout } from "./layout.tsx";
import { rowsOf } from "./numbers.ts";
import { direction, place } from "./projection.ts";
import { Surface } from "./surface.ts";
import { Turning } from "./turning.ts";

type SphereSession = Session<SphereData, SphereRequest, SphereAnswer>;

const REPORT = 150; // ms after a gesture until Streamlit learns of a changed loss

const lossKey = ({ loss, hyper }: Scene) => JSON.stringify([loss, hyper]);

// Return a place from which all three points of a scene are seen.
function middle(scene: Scene): Place {
  const sum = POINTS.map((name) => direction(scene[name])).reduce((a, b) =>
      a.map((x, i) => x + b[i]),
    ),
    [lon, lat] = Math.hypot(...sum) > 0.2 ? place(sum) : [scene.anchor[0] + 40, scene.anchor[1]];
  return [wrap(lon), clamp(lat, -55, 55)];
}

export class Sphere implements SessionPage<SphereData, SphereAnswer> {
  readonly session: SphereSession;
  readonly scene: Scene;
  readonly pressed = signal<number | null>(null); // state that is shown
  readonly answer = signal<SphereAnswer | null>(null);
  readonly rows = signal<Rows>([]);
  readonly notice = signal("");
  readonly places;
  readonly turning = new Turning(this);
  readonly surface = new Surface();
  onSphere: SphereAnswer | null = null; // last answer for the sphere
  angles: { answer: SphereAnswer; key: string } | undefined; // last answer with a map
  rasters: OffscreenCanvas[] | undefined; // of the map
  private readonly globe = createGlobe(this);
  private readonly circle = createCircle(this);
  private readonly map = createMap(this);
  private readonly render: () => void;
  private requestedMap = ""; // key of the map that was requested
  private reported: string; // loss that Streamlit knows
  private settled = { id: 0, linked: false }; // last request at rest
  private reporting: ReturnType<typeof setTimeout> | undefined;

  constructor(session: SphereSession) {
    const { data, whole, theme } = session;
    this.session = session;
    this.scene = structuredClone(data.scene);
    this.reported = lossKey(data.scene);
    this.places = signal<Places>({ ...this.scene, theme: theme.value });
    this.render = mountPanel(whole, () => <Layout app={this} />);
    this.rest(false);
    if (data.idle && !still()) this.turning.greet();
  }

  /** The figures of the surface: the globe, or the circle and the map. */
  get figures() {
    return this.scene.on === "sphere" ? [this.globe] : [this.circle, this.map];
  }

  // ---- state
  /** Stop what moves by itself. */
  touch() {
    if (this.turning.greeting) this.scene.eye = this.scene.eye.map((x) => Number(x.toFixed(1)));
    this.turning.stop();
  }

  /** Change the state as a control asks for; `preset` null: none of the list. */
  change(changes: Partial<Scene>, preset = this.pressed.value, stopped = true) {
    if (stopped) this.touch();
    Object.assign(this.scene, changes);
    this.pressed.value = preset;
    this.render();
    this.rest();
  }

  /** Show a state of the list; on the sphere the triplet is turned to the viewer. */
  showState(index: number) {
    const { scene } = this;
    this.touch();
    Object.assign(scene, structuredClone(this.session.data.states[index][scene.on]));
    if (scene.on === "sphere") this.turning.face(middle(scene));
    this.change({}, index, false);
  }

  /** Move a point within a gesture. */
  moveTo(name: Point, to: Place) {
    this.set(name, to);
    this.move();
  }

  /** Move P and N within a gesture; both angles from A, in -180..180. */
  moveBoth(both: Place) {
    const { anchor, positive, negative } = this.scene,
      [p, n] = both.map((x) => anchor[0] + clamp(x, -180, 180));
    this.set("positive", [p, positive[1]]);
    this.set("negative", [n, negative[1]]);
    this.move();
  }

  private set(name: Point, [lon, lat]: Place) {
    this.pressed.value = null;
    this.scene[name] = [Number(wrap(lon).toFixed(2)), Number(clamp(lat, -90, 90).toFixed(2))];
  }

  /** Look at the sphere from a longitude and latitude. */
  look([lon, lat]: Place) {
    this.scene.eye = [Number(wrap(lon).toFixed(2)), Number(clamp(lat, -89, 89).toFixed(2))];
    this.draw();
  }

  /** Follow the gestures of a figure. */
  gesture(phase: Phase) {
    if (phase === "start") this.touch();
    else if (phase === "end" && !this.turning.active) this.rest();
  }

  move() {
    this.draw();
    this.ask(false);
  }

  /** End a gesture: request the fine figure and the link, and report a changed loss to Streamlit. */
  rest(linked = true) {
    const report = () => {
      const key = lossKey(this.scene);
      if (key !== this.reported) this.session.setState("scene", structuredClone(this.scene));
      this.reported = key;
    };
    this.draw();
    this.settled = { id: this.ask(true), linked };
    clearTimeout(this.reporting);
    if (linked) this.reporting = setTimeout(report, REPORT);
  }

  // ---- requests and answers
  private ask(fine: boolean) {
    const { scene } = this,
      key = lossKey(scene) + scene.probe,
      map = scene.on === "circle" && this.angles?.key !== key;
    if (map) this.requestedMap = key;
    return this.session.send({ scene, fine, map });
  }

  onAnswer(answer: SphereAnswer) {
    if (answer.map) this.angles = { answer, key: this.requestedMap };
    if (answer.on === "sphere") this.onSphere = answer;
    this.prepare(answer);
    this.answer.value = answer;
    this.rows.value = rowsOf(answer);
    this.notice.value = this.session.slower;
    this.draw();
    const { id, linked } = this.settled;
    if (id !== answer.id) return;
    for (const figure of this.figures) figure.announce();
    if (linked)
      writeAddress(new URLSearchParams(answer.link).toString().replaceAll("%2C", ","), [
        "hide",
        "socket",
        "embed",
      ]);
  }

  // Colour sphere and map, of a new answer only what it contains.
  private prepare(fresh?: SphereAnswer) {
    const theme = this.session.theme.value;
    if (this.onSphere && (!fresh || fresh.on === "sphere"))
      this.surface.load(this.onSphere, theme, this.scene.region);
    if (this.angles && (!fresh || fresh.map)) this.rasters = mapRasters(this.angles.answer, theme);
  }

  // ---- drawing
  private draw() {
    this.places.value = { ...this.scene, theme: this.session.theme.value };
    for (const figure of this.figures) figure.invalidate();
  }

  onTheme() {
    this.prepare();
    for (const figure of [this.globe, this.circle, this.map])
      figure.setTheme(this.session.theme.value);
    this.draw();
  }

  resize() {
    for (const figure of this.figures) figure.resize();
  }

  get motions(): Motion[] {
    const [lon, lat] = this.scene.eye;
    if (this.scene.on === "circle") return [];
    const pose = (share: number) => {
      this.touch();
      this.look([lon + 360 * share, lat]);
    };
    const end = () => {
      this.look([lon, lat]);
      this.rest();
    };
    return [{ title: "one turn of the sphere", pose, end }];
  }

  close() {
    this.turning.stop();
    clearTimeout(this.reporting);
    for (const figure of [this.globe, this.circle, this.map]) figure.close();
  }
}

export const { render, unmount } = defineSession(
  { api: "api/sphere", styles: "losses/fields/sphere/sphere.css" },
  (session: SphereSession) => new Sphere(session),
);
