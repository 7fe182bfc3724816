// Frames as a file: each is shown at its given time, however long encoding takes.
import type { Encoded } from "../types.ts";
import { mp4 } from "./mp4.ts";
import { webm } from "./webm.ts";
import { zip } from "./zip.ts";

export const RATE = 25, // frames per second
  LARGEST = 1440; // maximal pixels of the longer side
const BITS = 10e6, // bits per second
  KEYS = 50, // frames between key frames
  WAITING = 3; // frames that the encoder may have queued

// file format; the last one writes every frame as PNG
export type Kind = "mp4" | "webm" | "zip";
export type Writer = {
  add(ms: number): Promise<void>;
  end(ms: number): Promise<Blob>;
  drop(): void;
};

const SIZE = { width: LARGEST, height: LARGEST, bitrate: BITS, framerate: RATE };
const CODECS: Record<"mp4" | "webm", VideoEncoderConfig> = {
  mp4: { ...SIZE, codec: "avc1.640028", avc: { format: "avc" } }, // plays in PowerPoint and Keynote
  webm: { ...SIZE, codec: "vp09.00.41.08" }, // plays in all browsers
};
const FILES = { mp4, webm };

// Return the formats this browser can write; it encodes video only on localhost or over https.
export async function kinds(): Promise<Kind[]> {
  const able = await Promise.all(
    (Object.keys(CODECS) as ("mp4" | "webm")[]).map(async (kind) =>
      globalThis.VideoEncoder && (await VideoEncoder.isConfigSupported(CODECS[kind])).supported
        ? [kind]
        : [],
    ),
  );
  return [...able.flat(), "zip"];
}

export const after = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

// Return a writer that adds the current content of a canvas as a frame.
// canvas: of constant size
export const writer = (canvas: HTMLCanvasElement, kind: Kind): Writer =>
  kind === "zip" ? new Pictures(canvas) : new Film(canvas, kind);

class Film {
  canvas: HTMLCanvasElement;
  kind: "mp4" | "webm";
  added: number;
  film: Encoded;
  encoder: VideoEncoder;
  failed: DOMException;
  constructor(canvas: HTMLCanvasElement, kind: "mp4" | "webm") {
    const { width, height } = canvas;
    this.canvas = canvas;
    this.kind = kind;
    this.added = 0;
    this.film = { width, height, length: 0, pictures: [] };
    this.encoder = new VideoEncoder({
      output: (chunk, about) => {
        const data = new Uint8Array(chunk.byteLength),
          { description, colorSpace } = about?.decoderConfig ?? {};
        chunk.copyTo(data);
        this.film.pictures.push({ ms: chunk.timestamp / 1000, key: chunk.type === "key", data });
        if (description) this.film.description ??= bytes(description);
        this.film.colours ??= colorSpace;
      },
      error: (error) => {
        this.failed = error;
      },
    });
    this.encoder.configure({ ...CODECS[kind], width, height });
  }

  // ms: later than all previous times
  async add(ms: number) {
    if (this.failed) throw this.failed;
    const picture = new VideoFrame(this.canvas, { timestamp: 1000 * ms });
    this.encoder.encode(picture, { keyFrame: this.added++ % KEYS === 0 });
    picture.close();
    await this.room();
  }

  async room(): Promise<void> {
    if (this.encoder.encodeQueueSize < WAITING) return;
    await after(4);
    await this.room();
  }

  // ms: time at which the last frame ends
  async end(ms: number) {
    await this.encoder.flush();
    this.drop();
    this.film.length = ms;
    return new Blob([FILES[this.kind](this.film)], { type: `video/${this.kind}` });
  }

  drop() {
    if (this.encoder.state !== "closed") this.encoder.close();
  }
}

class Pictures {
  canvas: HTMLCanvasElement;
  files: { name: string; data: Uint8Array<ArrayBuffer> }[];
  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.files = [];
  }

  async add() {
    const picture = await new Promise((resolve: BlobCallback) => {
      this.canvas.toBlob(resolve, "image/png");
    });
    if (!picture) throw new Error("there is no room for the image");
    const name = `${String(this.files.length + 1).padStart(4, "0")}.png`;
    this.files.push({ name, data: new Uint8Array(await picture.arrayBuffer()) });
  }

  async end() {
    return new Blob(zip(this.files), { type: "application/zip" });
  }

  drop() {}
}

const bytes = (source: AllowSharedBufferSource) =>
  ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice()
    : new Uint8Array(source).slice();
