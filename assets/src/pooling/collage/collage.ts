// Collages, one row per pooling with its weight map on top. The page controls the opacity; a click
// chooses a collage.
import { h } from "preact";
import { computed, signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import type { SetState, Theme } from "../../kit/types.ts";
import type { CollageData } from "./types.ts";
import { defineComponent, loadStyles, newTheme } from "../../kit/component.ts";
import { div } from "../../kit/dom.ts";
import { mountPanel } from "../../kit/panel/panel.tsx";
import { Story } from "../story/story.ts";
import { Page } from "./page.tsx";

const bytes = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export class Collage {
  root: ParentNode;
  whole = div("lab collage");
  ready: Promise<void>;
  data: CollageData;
  theme: Theme;
  setState: SetState;
  story: Story;
  opacity: Signal<number>; // of the weight maps
  style = computed(() => `--opacity: ${this.opacity.value}`);
  here = signal(""); // description of the cell under the pointer
  maps: Uint8Array[] = []; // of each pooling, for all images
  private tag = ""; // of the data shown

  constructor(root: ParentNode, data: CollageData) {
    this.root = root;
    this.data = data;
    this.opacity = signal(data.opacity);
    this.story = new Story({ data, hidden: new Set(data.hide) }, "collage", {
      back: ["gap_vs_gsp", "can it be learned?"],
      next: ["settings", "train one"],
    });
    root.append(this.whole);
    this.ready = loadStyles(root, "pooling/collage/collage.css").then(() => {});
  }

  show = () => mountPanel(this.whole, () => h(Page, { app: this }));

  async update(data: CollageData) {
    this.data = data;
    await this.ready;
    newTheme(this);
    if (data !== this.data) return;
    if (data.tag !== this.tag) {
      this.maps = data.rows.map(({ maps }) => bytes(maps));
      const more = data.followed ? "; click one to see its nearest neighbours in each run" : "";
      this.here.value = `Point at an image to read a weight${more}.`;
      this.whole.dataset.rows = String(data.rows.length);
    }
    this.tag = data.tag;
    this.story.tell(data.verdict, data.next);
    this.show();
  }

  close() {}
}

export const { render, unmount } = defineComponent(Collage);
