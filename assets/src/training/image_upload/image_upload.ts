// Folders and large numbers of images as one upload: Streamlit's uploader sends and lists files one
// by one, which blocks the page. They are packed into a .zip file here, which the uploader sends.

import { asset } from "../../kit/address.ts";
import type { Mounted } from "../../kit/types.ts";
import type { Entry, UploadData } from "./types.ts";
import { el, styled } from "../../kit/dom.ts";
import { zipArchive } from "../../kit/zip.ts";
import { gather, shorten, walk } from "./files.ts";

const COMMON = asset("theme/layout.css");
const OWN = asset("training/image_upload/image_upload.css");

const apps: WeakMap<HTMLElement, ImageUpload> = new WeakMap();

export function render({ parentElement, data }: Mounted<UploadData>) {
  const app = apps.get(parentElement) ?? new ImageUpload(parentElement);
  apps.set(parentElement, app);
  app.data = data;
}

export function unmount(element: HTMLElement) {
  apps.get(element)?.close();
  apps.delete(element);
}

class ImageUpload {
  folder: HTMLInputElement;
  button: HTMLButtonElement;
  status: HTMLSpanElement;
  whole: HTMLDivElement;
  ending: AbortController;
  data: UploadData;
  busy = false;
  handingOver = false; // while the uploader receives the archive

  constructor(element: HTMLElement) {
    this.folder = el("input", { type: "file", hidden: true, multiple: true });
    this.folder.webkitdirectory = true;
    this.folder.addEventListener("change", () => this.pick());
    this.button = el("button", { type: "button", onclick: () => this.folder.click() });
    this.button.textContent = "Upload a folder";
    this.status = el("span", { class: "status", role: "status" });
    this.whole = el("div", { class: "lab upload" }, this.button, this.folder, this.status);
    styled(element, COMMON, OWN).then(() => element.append(this.whole));
    this.ending = new AbortController();
    const { signal } = this.ending;
    for (const kind of ["change", "drop"])
      document.addEventListener(kind, (event) => this.intercept(event), { capture: true, signal });
  }

  close() {
    this.ending.abort();
    this.whole.remove();
  }

  // Return the file input of Streamlit's uploader.
  get uploader() {
    return document.querySelector(
      `.st-key-${CSS.escape(this.data.uploader)} input[type=file]`,
    ) as HTMLInputElement | null;
  }

  pick() {
    const files = [...(this.folder.files ?? [])];
    this.folder.value = "";
    this.pack(files.map((file) => ({ path: file.webkitRelativePath || file.name, file })));
  }

  // Take over a choice of many files, or a drop of many files or of folders, from the uploader.
  intercept(event: Event) {
    if (this.handingOver || !(event.target instanceof Element)) return;
    if (!event.target.closest(`.st-key-${CSS.escape(this.data.uploader)}`)) return;
    const input = event.target instanceof HTMLInputElement ? event.target : null,
      transfer = event instanceof DragEvent ? event.dataTransfer : null,
      items = [...(transfer?.items ?? [])].map((item) => item.webkitGetAsEntry()),
      files = [...((input ?? transfer)?.files ?? [])];
    if (files.length <= this.data.few && !items.some((item) => item?.isDirectory)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    if (transfer) event.target.dispatchEvent(new DragEvent("dragleave", { bubbles: true }));
    if (transfer) walk(items).then((entries) => this.pack(entries));
    else this.pack(files.map((file) => ({ path: file.name, file })));
  }

  // Pack the images among some files, and hand the archive to the uploader.
  async pack(given: Entry[]) {
    if (this.busy) return;
    const { entries, name, refusal } = gather(given, this.data);
    this.say(refusal);
    if (refusal) return;
    this.busy = this.button.disabled = true;
    try {
      const total = entries.length.toLocaleString("en"),
        archive = zipArchive();
      let done = 0;
      for await (const { path, file } of entries) {
        await archive.add(path, file);
        if (++done % 50 === 0)
          this.say(`Packing ${done.toLocaleString("en")} of ${total} images …`);
      }
      this.handOver(new File([archive.end()], `${name}.zip`, { type: "application/zip" }));
      this.say(`${total} images packed into one file`);
    } catch (error) {
      this.say(`The images cannot be read: ${shorten(String(error))}`);
    } finally {
      this.busy = this.button.disabled = false;
    }
  }

  handOver(archive: File) {
    const input = this.uploader,
      files = new DataTransfer();
    if (!input) throw new Error("the page has changed; try again");
    files.items.add(archive);
    input.files = files.files;
    this.handingOver = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    this.handingOver = false;
  }

  say(text: string) {
    this.status.textContent = text;
  }
}
