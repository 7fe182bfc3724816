// Slot for the landscape of a page's losses. Its module and plotly.js are loaded on first use.
/** @import { Landscape } from "../losses/fields/landscape/landscape.js" */
/** @import { Host } from "../losses/fields/landscape/types.js" */

export class LandscapeSlot {
  /** @type {Landscape | undefined} */
  shown;
  wanted = false;

  /**
   * @param {Host} host
   * @param {{ page: string, pair: boolean, put(box: HTMLElement | null): void }}
   *   about put: adds the landscape to the page; null removes it
   */
  constructor(host, about) {
    this.host = host;
    this.about = about;
  }

  // Update the landscape for the page's state; `roll`: the gesture has ended.
  /** @param {boolean} roll */
  async follow(roll) {
    const { host, about } = this,
      { landscape: module } = host.data,
      { landscape, mass } = host.landscapeState();
    this.wanted = landscape && Boolean(module);
    if (this.shown && this.wanted) {
      this.shown.weigh(mass);
      this.shown.ask(roll);
    } else if (this.shown) {
      this.close();
      about.put(null);
    } else if (this.wanted) {
      const address = new URL(host.data.files + module, location.href).href,
        loaded = await import(address);
      if (this.shown || !this.wanted) return;
      this.shown = /** @type {Landscape} */ (new loaded.Landscape(host, { ...about, mass }));
      about.put(this.shown.box);
      this.shown.ask(true);
    }
  }

  close() {
    this.shown?.close();
    this.shown = undefined;
  }
}
