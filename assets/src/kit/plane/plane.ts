// Fields page: a triplet in the field of its loss, with panels. All numbers come from Python.
//
//   scene      the state; edit: presets, reset, snap (snap.ts), undo (history.ts)
//   requests   what Python is asked
//   figure     the canvas with its points, on the kernel of kit/figure (plane_figure.ts, paint.ts)
//   readout    numbers, notice and charts; panel, explain, lessons: the rest of the page
//   variant    what another page changes of this (Home, Failures)
import type { Hyper, Motion, Place, Point, Schema, SetState, Theme } from "../types.ts";
import type { Figure } from "../figure/figure.ts";
import type { FigureFormat } from "../figure/file.ts";
import type { LandscapeSlot } from "../landscape_slot.ts";
import type { Batch, Field, FieldData, Hover, Scene } from "./types.ts";
import type { Variant } from "./variant.ts";
import { carry } from "../carry.ts";
import { defineComponent, loadStyles, newTheme, receiveFallback } from "../component.ts";
import { save, still, styled, writeAddress } from "../dom.ts";
import { fileOf } from "../figure/file.ts";
import { controlPanel } from "./control_panel.tsx";
import { Edit } from "./edit.ts";
import { Explain } from "./explain.tsx";
import { landscapeOf } from "./landscape.ts";
import { Lessons } from "./lessons.tsx";
import { rasterise } from "./paint.ts";
import { planeFigure } from "./plane_figure.ts";
import { Readout } from "./readout.tsx";
import { Requests } from "./requests.ts";
import { snapped } from "./snap.ts";
import { stageOf } from "./stage.ts";

const ARROW = 130; // length of the longest arrow of the forces along edges, px

export class Fields {
  root: HTMLElement;
  data: FieldData;
  variant: Variant = {};
  scene: Scene;
  query: string;
  hidden: Set<string>;
  menus: FieldData["menus"];
  schema: Schema;
  theme: Theme;
  setState: SetState;
  ready: Promise<void>;
  whole: HTMLElement;
  stage: HTMLElement;
  landscapeButton: HTMLButtonElement;
  edit: Edit;
  requests: Requests;
  figure: Figure;
  readout: Readout;
  panel: ReturnType<typeof controlPanel>;
  explain: Explain;
  lessons: Lessons;
  landscape: LandscapeSlot;
  batch: Batch = { B: 32, C: 4 }; // of which margins are shown
  field: Field | undefined;
  rasters: ReturnType<typeof rasterise> | undefined;
  hovered: Hover | null = null;
  forceScale = 0; // px per unit, of the forces along edges
  private written: string | undefined; // address as this page wrote it last
  private dropCarry: (() => void) | undefined;

  /** `variant` is called with the new page and returns what it changes. */
  constructor(root: HTMLElement, data: FieldData, variant?: (app: Fields) => Variant) {
    this.root = root;
    this.data = data;
    this.scene = structuredClone(data.scene);
    this.query = data.query;
    this.hidden = new Set(data.hide);
    this.menus = data.menus;
    if (variant) this.variant = variant(this);
    this.requests = new Requests(
      {
        get: () => ({
          data: this.data,
          scene: this.scene,
          ...(this.explain?.margins.open ? { batch: this.batch } : {}),
        }),
        extra: () => this.variant.extra?.() ?? {},
        ask: (request) => this.setState("ask", request),
        isStale: (answer) => this.variant.isStale?.(answer) ?? false,
        receive: (answer) => this.receive(answer),
        receiveHover: ({ hover }) => this.readout.showHover(hover),
      },
      this.variant.route ?? "api/field",
    );
    if (data.carry)
      this.dropCarry = carry(data.base + data.carry, () => `from=plane&${this.query ?? ""}`);
    this.ready = this.build(data);
  }

  private async build(data: FieldData): Promise<void> {
    await styled(this.root, ...(this.variant.styles ?? []));
    this.schema = await loadStyles(this.root, "kit/plane/plane.css");
    this.edit = new Edit(this);
    this.landscape = landscapeOf(this);
    this.readout = new Readout(this);
    this.panel = controlPanel(this);
    this.explain = new Explain(this);
    this.lessons = new Lessons(this);
    this.figure = planeFigure(this);
    Object.assign(this, stageOf(this));
    this.variant.arrange?.();
    this.root.append(this.whole);
    this.onTheme();
    this.rebuild();
    this.requests.send("first");
    if (data.idle && !still()) this.lessons.orbit();
    else this.requests.send("resting");
    this.landscape.follow(true);
  }

  /** Build the panels for the scene. */
  rebuild(): void {
    this.panel.build();
    this.explain.build();
    this.sync();
  }

  // ---- gestures

  /** Before a change: stop what moves by itself. */
  touch(): void {
    this.lessons.still();
  }

  /** After a change within a gesture. */
  move(): void {
    this.sync();
    this.requests.send("moving");
    if (this.scene.landscape) this.landscape.follow(false);
  }

  /** End a gesture: request the fine figure and the link. */
  rest(remember = true): void {
    if (remember) this.edit.remember();
    this.lessons.outdated();
    this.sync();
    this.requests.send("resting");
    this.landscape.follow(true);
    this.figure.announce();
  }

  /** Return the place that a point takes when it is moved to another one. */
  snapped(name: Point, place: Place): Place {
    return snapped(this.scene, name, place, this.variant.radius?.() ?? 1);
  }

  /** Let the page follow the scene. */
  sync(): void {
    if (!this.figure.busy) this.panel.show();
    this.landscapeButton.ariaPressed = String(this.scene.landscape);
    this.figure.invalidate();
  }

  // ---- answers of Python

  /** Show a figure: take over what Python has computed for the scene, numbers and the link. */
  private receive(answer: Field): void {
    const { scene, requests, panel } = this;
    this.field = answer;
    this.rasters = rasterise(answer, this.theme, answer.signed);
    this.forceScale = forceScale(answer, this.forceScale);
    if (scene.margin === "normalised") {
      scene.hyper.m1 = answer.m1;
      if (scene.mu === null && answer.id === requests.sent) {
        scene.mu = answer.mu;
        panel.build();
        panel.show();
      }
    } else if (answer.mu !== null) scene.mu = answer.mu;
    this.readout.update(answer.query !== undefined);
    if (answer.query) {
      this.writeLink(answer.query);
      const changes = this.figure.busy || requests.link.waiting;
      if (!changes && adopt(scene, answer.hyper)) {
        panel.build();
        this.sync();
      }
    }
    this.variant.onField?.(answer);
    this.figure.invalidate();
  }

  private writeLink(query: Record<string, string>): void {
    const { bare, kept = ["hide", "socket", "grid"], onLink } = this.variant;
    if (bare) return;
    this.query = new URLSearchParams(query).toString();
    writeAddress(this.query, kept);
    this.written = location.search;
    onLink?.call(this.variant, this.query);
  }

  // ---- messages from Streamlit

  /** Receive data, among them a scene that was changed on Python's side. */
  async update(sent: FieldData): Promise<void> {
    await this.ready;
    const data = this.variant.accept?.(sent) ?? sent;
    this.onTheme();
    // If the address is still the one written here, the data are of an earlier one.
    const late = location.search === this.written;
    if (!late && data.query !== this.data.query && data.query !== this.query) {
      this.scene = structuredClone(data.scene);
      this.query = data.query;
      this.hidden = new Set(data.hide);
      this.requests.rescale();
      this.rebuild();
      this.requests.send("resting");
      this.landscape.follow(true);
    }
    this.data = data;
    receiveFallback(this.requests, data);
    this.variant.onData?.();
  }

  private onTheme(): void {
    if (!newTheme(this)) return;
    this.figure.setTheme(this.theme);
    if (this.field) this.rasters = rasterise(this.field, this.theme, this.field.signed);
    this.readout.drawCharts();
    this.sync();
    if (this.landscape.shown) this.landscape.follow(true);
  }

  // ---- presentation, film, files

  resize(): void {
    this.figure.resize();
  }
  get link(): Requests["link"] {
    return this.requests.link;
  }
  get frameRequest(): number | null {
    return this.figure.request || null;
  }
  get motions(): Motion[] {
    return this.variant.motions === false ? [] : [this.lessons.motion()];
  }

  /** Save the figure as it is seen. */
  async save(format: FigureFormat): Promise<void> {
    save(`${this.variant.name ?? "field"}.${format}`, await fileOf(this.figure.sheet(), format));
  }

  close(): void {
    this.dropCarry?.();
    this.landscape.close();
    this.requests.link.close();
    this.readout.close();
    this.figure.close();
  }
}

// Return px per unit of force. It stays as long as the longest arrow is neither short nor long.
function forceScale({ forces, residuals, strengths }: Field, before: number): number {
  const largest = Math.max(
      ...forces.concat(residuals).map((force) => Math.hypot(...force)),
      ...Object.values(strengths).map(Math.abs),
      1e-9,
    ),
    share = (before * largest) / ARROW;
  return share > 0.4 && share < 1.5 ? before : ARROW / largest;
}

// Take over parameters as Python has limited them to their ranges. Return true if one of the scene
// differed.
function adopt(scene: Scene, hyper: Hyper): boolean {
  const differs = Object.entries(hyper).some(
    ([name, value]) =>
      name in scene.hyper &&
      typeof value === "number" &&
      Math.abs(value - Number(scene.hyper[name])) > 1e-9,
  );
  if (differs) scene.hyper = hyper;
  return differs;
}

/** Return the component of a page that shows the plane with changes. */
export const fieldsWith = (variant: (app: Fields) => Variant) =>
  defineComponent(
    class extends Fields {
      constructor(root: HTMLElement, data: FieldData) {
        super(root, data, variant);
      }
    },
  );

export const { render, unmount } = defineComponent(Fields);
