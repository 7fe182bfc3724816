// Packing of images: message from pages/training/new_run/bring_your_own/inputs.py.
import type { Data } from "../../kit/types.ts";

export interface Entry {
  path: string;
  file: Blob;
}
export interface UploadData extends Data {
  uploader: string; // key of Streamlit's uploader
  few: number; // largest number of files that are left to the uploader
  megabytes: number; // largest size of all images
  suffixes: string[]; // of images, without dots
}
export interface Gathered {
  entries: Entry[];
  name: string;
  refusal: string; // "" if the images can be uploaded
}
