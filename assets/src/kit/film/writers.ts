// Writers of films. This module has the libraries for containers; it is loaded by the first
// recording.
import type { Kind, VideoKind, Writer } from "./formats.ts";
import {
  BufferTarget,
  Mp4OutputFormat,
  Output,
  Quality,
  VideoSample,
  VideoSampleSource,
  WebMOutputFormat,
} from "mediabunny";
import { zipArchive } from "../zip.ts";
import { BITS, CODECS, RATE } from "./formats.ts";

// Return a writer that adds the current content of a canvas, which keeps its size, as a frame.
export const openWriter = (canvas: HTMLCanvasElement, kind: Kind) =>
  kind === "zip" ? openImages(canvas) : openVideo(canvas, kind);

async function openVideo(canvas: HTMLCanvasElement, kind: VideoKind): Promise<Writer> {
  const format = kind === "mp4" ? new Mp4OutputFormat() : new WebMOutputFormat(),
    target = new BufferTarget(),
    output = new Output({ format, target }),
    source = new VideoSampleSource({
      codec: kind === "mp4" ? "avc" : "vp9",
      fullCodecString: CODECS[kind],
      quality: new Quality({ bitrate: BITS }),
      onEncoderConfig: (config) => {
        config.framerate = RATE;
      },
    });
  output.addVideoTrack(source);
  await output.start();
  let frame: VideoSample | null = null; // the last one, until it is known how long it is shown
  const flush = async (ms: number) => {
    if (!frame) return;
    frame.setDuration(ms / 1000 - frame.timestamp);
    await source.add(frame);
    frame.close();
    frame = null;
  };
  return {
    async add(ms) {
      const next = new VideoSample(canvas, { timestamp: ms / 1000 });
      await flush(ms);
      frame = next;
    },
    async end(ms) {
      await flush(ms);
      await output.finalize();
      return new Blob([target.buffer ?? ""], { type: `video/${kind}` });
    },
    async cancel() {
      frame?.close();
      if (output.state === "started") await output.cancel();
    },
  };
}

async function openImages(canvas: HTMLCanvasElement): Promise<Writer> {
  const archive = zipArchive();
  let count = 0;
  return {
    async add() {
      const image = await new Promise((resolve: BlobCallback) => {
        canvas.toBlob(resolve, "image/png");
      });
      if (!image) throw new Error("there is no room for the image");
      await archive.add(`${String(++count).padStart(4, "0")}.png`, image);
    },
    end: async () => archive.end(),
    cancel: async () => {},
  };
}
