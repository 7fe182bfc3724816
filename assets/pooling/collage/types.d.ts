// Collages and weight maps, as pages/pooling/collage/canvas.py sends them.
import type { Data } from "../../shared/types.js";

export interface CollageRow {
  name: string; // of a pooling
  words: string;
  maps: string; // base64 of uint8 (images, height, width), 255 for `most`
  shares: number[] | null; // of the weight on the tile that shows the class
  images: string; // address that a sample's index completes
}
export interface CollageImage {
  index: number;
  name: string; // of the class
  tile: number; // that shows the class
  source: string;
}
export interface CollageData extends Data {
  tag: string; // another one where anything but the choice differs
  rows: CollageRow[];
  images: CollageImage[];
  side: [height: number, width: number];
  most: number; // times the average weight
  grid: number; // tiles a side; 0: no collages
  followed: boolean; // a click shows the neighbours
  opacity: number;
  chosen: number;
  verdict: string;
  next: string; // query of the Train page
  hide: string[];
}
