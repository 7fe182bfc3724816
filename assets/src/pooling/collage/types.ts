// Collages and weight maps from pages/pooling/collage/canvas.py.
import type { Data } from "../../kit/types.ts";

export interface CollageRow {
  name: string; // name of the pooling
  words: string;
  maps: string; // base64 of uint8 (images, height, width); 255 means `most`
  shares: number[] | null; // share of the weight on the tile that shows the class
  images: string; // address prefix that a sample's index completes
}
export interface CollageImage {
  index: number;
  name: string; // name of the class
  tile: number; // tile that shows the class
  source: string;
}
export interface CollageData extends Data {
  tag: string; // changes whenever anything but the choice changes
  rows: CollageRow[];
  images: CollageImage[];
  side: [height: number, width: number];
  most: number; // multiple of the average weight
  grid: number; // tiles per side; 0: no collages
  followed: boolean; // a click shows the neighbours
  opacity: number;
  chosen: number;
  verdict: string;
  next: string; // query of New run
  hide: string[];
}
