// Folders and large numbers of images as one upload: Streamlit's uploader sends and lists files one
// by one, which blocks the page. They are packed into a .zip file here, which the uploader sends.
import { render as renderInto } from "preact";
import { useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import type { Mounted } from "../../kit/types.ts";
import type { Entry, UploadData } from "./types.ts";
import { asset } from "../../kit/address.ts";
import { styled } from "../../kit/dom.ts";
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
  readonly busy = signal(false);
  readonly status = signal("");
  data: UploadData;
  private handingOver = false; // while the uploader receives the archive
  private readonly whole = document.createElement("div");
  private readonly ending = new AbortController();

  constructor(element: HTMLElement) {
    const { signal: ended } = this.ending;
    this.whole.className = "lab upload";
    renderInto(<FolderButton app={this} />, this.whole);
    styled(element, COMMON, OWN).then(() => element.append(this.whole));
    for (const kind of ["change", "drop"])
      document.addEventListener(kind, (event) => this.intercept(event), {
        capture: true,
        signal: ended,
      });
  }

  close() {
    this.ending.abort();
    this.whole.remove();
  }

  // Take over a choice of many files, or a drop of many files or of folders, from the uploader.
  private intercept(event: Event) {
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
    if (this.busy.value) return;
    const { entries, name, refusal } = gather(given, this.data);
    this.status.value = refusal;
    if (refusal) return;
    this.busy.value = true;
    try {
      const total = entries.length.toLocaleString("en"),
        archive = zipArchive();
      let done = 0;
      for await (const { path, file } of entries) {
        await archive.add(path, file);
        if (++done % 50 === 0)
          this.status.value = `Packing ${done.toLocaleString("en")} of ${total} images …`;
      }
      this.handOver(new File([archive.end()], `${name}.zip`, { type: "application/zip" }));
      this.status.value = `${total} images packed into one file`;
    } catch (error) {
      this.status.value = `The images cannot be read: ${shorten(String(error))}`;
    } finally {
      this.busy.value = false;
    }
  }

  // Give the archive to the file input of Streamlit's uploader.
  private handOver(archive: File) {
    const name = CSS.escape(this.data.uploader),
      input = document.querySelector<HTMLInputElement>(`.st-key-${name} input[type=file]`),
      files = new DataTransfer();
    if (!input) throw new Error("the page has changed; try again");
    files.items.add(archive);
    input.files = files.files;
    this.handingOver = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    this.handingOver = false;
  }
}

// Button that opens the browser's dialogue for folders, and the state of the packing.
function FolderButton({ app }: { app: ImageUpload }) {
  const folder = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" disabled={app.busy} onClick={() => folder.current?.click()}>
        Upload a folder
      </button>
      <input
        ref={folder}
        type="file"
        hidden
        multiple
        {...{ webkitdirectory: true }}
        onChange={({ currentTarget: input }) => {
          const files = [...(input.files ?? [])];
          input.value = "";
          app.pack(files.map((file) => ({ path: file.webkitRelativePath || file.name, file })));
        }}
      />
      <span class="status" role="status">
        {app.status}
      </span>
    </>
  );
}
