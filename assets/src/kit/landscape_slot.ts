// Slot for the landscape of a page's losses. Its module and plotly.js are loaded on first use.
import type { Landscape } from "../losses/fields/landscape/landscape.tsx";
import type { Host } from "../losses/fields/landscape/types.ts";

export class LandscapeSlot {
  host: Host;
  about: { page: string; pair: boolean; put(box: HTMLElement | null): void };
  shown: Landscape | undefined;
  wanted = false;

  // about: put: adds the landscape to the page; null removes it
  constructor(
    host: Host,
    about: { page: string; pair: boolean; put(box: HTMLElement | null): void },
  ) {
    this.host = host;
    this.about = about;
  }

  // Update the landscape for the page's state; `roll`: the gesture has ended.
  async follow(roll: boolean) {
    const { host, about } = this,
      { landscape: module } = host.data,
      { landscape, mass } = host.landscapeState();
    this.wanted = landscape && Boolean(module);
    if (this.shown && this.wanted) {
      this.shown.mass.value = mass;
      this.shown.ask(roll);
    } else if (this.shown) {
      this.close();
      about.put(null);
    } else if (this.wanted) {
      const address = new URL(host.data.files + module, location.href).href,
        loaded = await import(address);
      if (this.shown || !this.wanted) return;
      this.shown = new loaded.Landscape(host, { ...about, mass }) as Landscape;
      about.put(this.shown.box);
      this.shown.ask(true);
    }
  }

  close() {
    this.shown?.close();
    this.shown = undefined;
  }
}
