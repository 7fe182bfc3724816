// Where a page shows the landscape of its losses, if it offers one: its module, and plotly.js with
// it, are loaded when the first is asked for.
/** @import { Landscape } from "../losses/fields/landscape/landscape.js" */
/** @import { Host } from "../losses/fields/landscape/types.js" */

export class LandscapeSlot {
  /** @type {Landscape | undefined} */
  shown;
  wanted = false;

  /**
   * @param {Host} host
   * @param {{ page: string, pair: boolean, put(box: HTMLElement | null): void }} about put: into
   * the page, or null once there is none any more
   */
  constructor(host, about) {
    this.host = host;
    this.about = about;
  }

  // The page shows another state; `roll`: the hand rests.
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
