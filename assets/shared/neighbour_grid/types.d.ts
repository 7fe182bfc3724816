// What a page with images tells the listener on its tiles
// (pages/shared/widgets/neighbour_grid.py).
import type { Data } from "../types.js";

export interface GalleryData extends Data {
  keys: string[]; // which of forces, map, pages and back the page answers
  first: number; // the sample of the first tile
  images: string; // address that a sample's index completes
  ahead: number[]; // samples of the next page
}
