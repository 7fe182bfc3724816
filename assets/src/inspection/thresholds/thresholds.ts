// Thresholds page: distributions of pairs with a threshold to drag, its errors, and the pairs on
// both sides. Python sends all numbers once; everything that follows the threshold is done here.
import { h, render as renderInto } from "preact";
import type { SetState, Theme } from "../../kit/types.ts";
import type { Curves, ThresholdData } from "./types.ts";
import { defineComponent, loadStyles, newTheme } from "../../kit/component.ts";
import { div } from "../../kit/dom.ts";
import { decode } from "../../kit/socket.ts";
import { Failed, Page } from "./page.tsx";
import { ThresholdState } from "./state.ts";

class Thresholds {
  root: HTMLElement;
  data: ThresholdData;
  whole = div("lab thresholds");
  ready: Promise<void>;
  state: ThresholdState | undefined;
  setState: SetState;
  trigger: SetState;
  theme: Theme;

  constructor(root: HTMLElement, data: ThresholdData) {
    this.root = root;
    this.data = data;
    this.whole.hidden = true;
    root.append(this.whole);
    this.ready = this.build();
  }

  async build() {
    const [curves] = await Promise.all([
      this.fetchFile("curves").catch((error) => error as Error),
      loadStyles(this.root, "inspection/thresholds/thresholds.css"),
    ]);
    this.whole.hidden = false;
    if (curves instanceof Error) {
      renderInto(h(Failed, { message: curves.message }), this.whole);
      return;
    }
    newTheme(this);
    this.state = new ThresholdState(curves as Curves, this.data, this);
    this.state.theme.value = this.theme;
    renderInto(h(Page, { key: this.data.address, state: this.state }), this.whole);
  }

  async fetchFile(name: string) {
    const answer = await fetch(`${this.data.address}${name}.bin`);
    if (!answer.ok) throw new Error((await answer.text()) || "Reload the page.");
    return decode(await answer.arrayBuffer());
  }

  async update(data: ThresholdData) {
    const moved = data.address !== this.data.address;
    this.data = data;
    await this.ready;
    if (moved) {
      this.close();
      await (this.ready = this.build());
    }
    if (!this.state) return;
    newTheme(this);
    this.state.theme.value = this.theme;
    this.state.update(data);
  }

  close() {
    this.state?.close();
    this.state = undefined;
  }
}

export const { render, unmount } = defineComponent(Thresholds);
