// Frames as a file: each is shown at its given time, however long encoding takes.
/** @import { Encoded } from "../types.js" */
import { mp4 } from "./mp4.js";
import { webm } from "./webm.js";
import { zip } from "./zip.js";

export const RATE = 25, // frames per second
  LARGEST = 1440; // maximal pixels of the longer side
const BITS = 10e6, // bits per second
  KEYS = 50, // frames between key frames
  WAITING = 3; // frames that the encoder may have queued

/** @typedef {"mp4" | "webm" | "zip"} Kind file format; the last one writes every frame as PNG */
/** @typedef {{ add(ms: number): Promise<void>, end(ms: number): Promise<Blob>, drop(): void }} Writer */

const SIZE = { width: LARGEST, height: LARGEST, bitrate: BITS, framerate: RATE };
/** @type {Record<"mp4" | "webm", VideoEncoderConfig>} */
const CODECS = {
  mp4: { ...SIZE, codec: "avc1.640028", avc: { format: "avc" } }, // plays in PowerPoint and Keynote
  webm: { ...SIZE, codec: "vp09.00.41.08" }, // plays in all browsers
};
const FILES = { mp4, webm };

/**
 * Return the formats this browser can write; it encodes video only on localhost or over https.
 *
 * @returns {Promise<Kind[]>}
 */
export async function kinds() {
  const able = await Promise.all(
    /** @type {("mp4" | "webm")[]} */ (Object.keys(CODECS)).map(async (kind) =>
      globalThis.VideoEncoder && (await VideoEncoder.isConfigSupported(CODECS[kind])).supported
        ? [kind]
        : [],
    ),
  );
  return [...able.flat(), "zip"];
}

/** @param {number} ms */
export const after = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/**
 * Return a writer that adds the current content of a canvas as a frame.
 *
 * @param {HTMLCanvasElement} canvas of constant size
 * @param {Kind} kind
 * @returns {Writer}
 */
export const writer = (canvas, kind) =>
  kind === "zip" ? new Pictures(canvas) : new Film(canvas, kind);

class Film {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {"mp4" | "webm"} kind
   */
  constructor(canvas, kind) {
    const { width, height } = canvas;
    this.canvas = canvas;
    this.kind = kind;
    this.added = 0;
    /** @type {Encoded} */
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

  /** @param {number} ms later than all previous times */
  async add(ms) {
    if (this.failed) throw this.failed;
    const picture = new VideoFrame(this.canvas, { timestamp: 1000 * ms });
    this.encoder.encode(picture, { keyFrame: this.added++ % KEYS === 0 });
    picture.close();
    await this.room();
  }

  /** @returns {Promise<void>} */
  async room() {
    if (this.encoder.encodeQueueSize < WAITING) return;
    await after(4);
    await this.room();
  }

  /** @param {number} ms time at which the last frame ends */
  async end(ms) {
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
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {{ name: string, data: Uint8Array<ArrayBuffer> }[]} */
    this.files = [];
  }

  async add() {
    const picture = await new Promise((/** @type {BlobCallback} */ resolve) => {
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

/** @param {AllowSharedBufferSource} source */
const bytes = (source) =>
  ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice()
    : new Uint8Array(source).slice();
