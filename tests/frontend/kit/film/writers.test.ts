// Node has no video encoder: a stand-in turns each frame into the bytes of its number, so that these
// tests see what the films contain. tests/browser/test_film.py plays films that Chromium encoded.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { unzipSync } from "fflate";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import type { Kind } from "../../../../assets/src/kit/film/formats.ts";
import { openWriter } from "../../../../assets/src/kit/film/writers.ts";

const AVCC = Uint8Array.of(1, 100, 0, 40, 255, 225, 0, 2, 0x67, 100, 1, 0, 2, 0x68, 1);
const SIZE = { codedWidth: 640, codedHeight: 360 };

class Canvas {
  width = SIZE.codedWidth;
  height = SIZE.codedHeight;
  drawn = 0; // number of the frame on it
  toBlob(done: BlobCallback) {
    done(new Blob([`image ${this.drawn}`]));
  }
}

class Frame {
  static open = 0;
  [key: string]: unknown;
  constructor(source: any, init: any = {}) {
    const { timestamp, duration, drawn } = { ...source, ...init };
    const size = { ...SIZE, displayWidth: SIZE.codedWidth, displayHeight: SIZE.codedHeight };
    Object.assign(this, size, { timestamp, duration, drawn, format: "RGBX", colorSpace: {} });
    this.visibleRect = { x: 0, y: 0, width: SIZE.codedWidth, height: SIZE.codedHeight };
    Frame.open++;
  }
  clone() {
    return new Frame(this);
  }
  close() {
    Frame.open--;
  }
}

class Encoder {
  static configs: VideoEncoderConfig[] = [];
  static isConfigSupported = async (config: VideoEncoderConfig) => ({ supported: true, config });
  encodeQueueSize = 0;
  state = "configured";
  init: any;
  config: any;
  constructor(init: any) {
    this.init = init;
  }
  configure(config: any) {
    this.config = config;
    Encoder.configs.push(config);
  }
  encode(frame: any, { keyFrame }: any) {
    const data = Uint8Array.of(0, 0, 0, 2, keyFrame ? 0x65 : 0x41, frame.drawn),
      { codec } = this.config,
      description = codec.startsWith("avc") ? AVCC : undefined,
      { timestamp, duration } = frame;
    const chunk = {
      type: keyFrame ? "key" : "delta",
      timestamp,
      duration,
      byteLength: data.length,
      copyTo: (target: Uint8Array) => target.set(data),
    };
    const decoderConfig = { codec, description, ...SIZE };
    this.init.output(Object.assign(new (globalThis as any).EncodedVideoChunk(), chunk), {
      decoderConfig,
    });
  }
  async flush() {}
  close() {
    this.state = "closed";
  }
  addEventListener() {}
}

const stand: Record<string, unknown> = {
  HTMLCanvasElement: Canvas,
  VideoFrame: Frame,
  VideoEncoder: Encoder,
  EncodedVideoChunk: class {},
};
before(() => Object.assign(globalThis, stand));
after(() => {
  for (const name of Object.keys(stand)) delete (globalThis as any)[name];
});

// Write one frame per time; the film ends at `end`. Times in ms.
async function film(kind: Kind, times: number[], end: number) {
  const canvas = new Canvas(),
    writer = await openWriter(canvas as unknown as HTMLCanvasElement, kind);
  for await (const ms of times) {
    canvas.drawn++;
    await writer.add(ms);
  }
  const file = await writer.end(end);
  await writer.cancel();
  return { type: file.type, bytes: new Uint8Array(await file.arrayBuffer()) };
}

for (const kind of ["mp4", "webm"] as const)
  test(`a film as ${kind} shows each frame at its time, and the last one to the end`, async () => {
    const times = [0, 40, 90, ...Array.from({ length: 60 }, (_, i) => 120 + 40 * i)],
      end = 2517,
      { type, bytes } = await film(kind, times, end),
      input = new Input({ formats: ALL_FORMATS, source: new BufferSource(bytes) }),
      track = await input.getPrimaryVideoTrack();
    assert.equal(type, `video/${kind}`);
    assert.ok(track);
    assert.deepEqual([track.displayWidth, track.displayHeight], [640, 360]);
    assert.equal(track.codec, kind === "mp4" ? "avc" : "vp9");
    assert.equal(Encoder.configs.at(-1)?.framerate, 25);
    const packets = await Array.fromAsync(new EncodedPacketSink(track).packets());
    assert.deepEqual(
      packets.map((packet) => Math.round(1000 * packet.timestamp)),
      times,
    );
    assert.deepEqual(
      packets.map(({ data }) => data.at(-1)),
      times.map((_, i) => i + 1),
    );
    assert.equal(Math.round(1000 * ((await input.getDurationFromMetadata()) ?? 0)), end);
    const keys = packets.flatMap(({ type: of }, i) => (of === "key" ? [times[i]] : []));
    assert.equal(keys[0], 0);
    assert.ok(keys.length === 2 && keys[1] >= 2000, "a key frame every two seconds");
    assert.equal(Frame.open, 0);
  });

test("a film as images has them in order, and the same bytes for the same film", async () => {
  const { type, bytes } = await film("zip", [0, 40, 80], 120),
    files = unzipSync(bytes),
    text = (name: string) => new TextDecoder().decode(files[name]);
  assert.equal(type, "application/zip");
  assert.deepEqual(Object.keys(files), ["0001.png", "0002.png", "0003.png"]);
  assert.deepEqual(Object.keys(files).map(text), ["image 1", "image 2", "image 3"]);
  assert.deepEqual((await film("zip", [0, 40, 80], 120)).bytes, bytes);
});

test("a cancelled film releases its frames", async () => {
  const writer = await openWriter(new Canvas() as unknown as HTMLCanvasElement, "webm");
  await writer.add(0);
  await writer.add(40);
  await writer.cancel();
  assert.equal(Frame.open, 0);
});
