// Data for the listener on the image tiles of a page (pages/shared/widgets/neighbour_grid.py).
import type { Data } from "../types.ts";

export interface GalleryData extends Data {
  keys: string[]; // which of forces, map, pages and back the page handles
  first: number; // sample of the first tile
  images: string; // address prefix that a sample's index completes
  ahead: number[]; // samples of the next page
}
