// Both losses of the pair as surfaces above the planes.
import type { Compare } from "./compare.tsx";
import { LandscapeSlot } from "../../../kit/landscape_slot.ts";

/** Return the slot for the surfaces of a comparison. */
export function createLandscapes(app: Compare): LandscapeSlot {
  const { session } = app;
  const host = {
    root: session.whole.getRootNode() as ShadowRoot,
    data: session.data,
    get theme() {
      return session.theme.value;
    },
    get query() {
      return session.query;
    },
    landscapeState: () => app.state,
    landscapeOf: () => ({ comparison: app.state }),
    // The marbles were placed: move the scanning point there.
    letGo(place: number[]) {
      app.orbit.stop();
      app.state[app.state.probe] = place;
      app.rest();
    },
    weigh(mass: number) {
      app.state.mass = mass;
      app.rest();
    },
  };
  const put = (box: HTMLElement | null) => {
    app.landscape = box;
    app.render();
  };
  return new LandscapeSlot(host, { page: "compare", pair: true, put });
}
