// The landscape next to the plane: the loss as a surface, with a marble that follows the force.
import type { Host } from "../../losses/fields/landscape/types.ts";
import type { Fields } from "./plane.ts";
import { LandscapeSlot } from "../landscape_slot.ts";

/** Return the slot of the landscape of a page's scene. */
export function landscapeOf(app: Fields): LandscapeSlot {
  const host: Host = {
    root: app.root,
    get data() {
      return app.data;
    },
    get theme() {
      return app.theme;
    },
    get query() {
      return app.query;
    },
    landscapeState: () => app.scene,
    landscapeOf: () => ({ scene: app.scene }),
    letGo: (place) => app.edit.put({ [app.scene.probe]: place }, true),
    weigh(mass) {
      app.scene.mass = mass;
      app.rest();
    },
  };
  return new LandscapeSlot(host, {
    page: "field",
    pair: false,
    put(box) {
      app.stage.classList.toggle("beside", Boolean(box));
      if (box) app.panel.side.before(box);
    },
  });
}
