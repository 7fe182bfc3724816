// Small field on Home: the plane of the Fields page without its panels. Changes do not affect the
// address, and the view is fixed.
import { fieldsWith } from "../kit/plane/plane.ts";

export const { render, unmount } = fieldsWith(() => ({ bare: true }));
