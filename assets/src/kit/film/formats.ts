// Formats of films, and which of them this browser can write.
export const RATE = 25, // frames per second
  LONGEST_SIDE = 1440, // pixels
  BITS = 10e6; // per second

export type VideoKind = "mp4" | "webm";
export type Kind = VideoKind | "zip"; // file format; the last one has every frame as PNG

export interface Writer {
  add(ms: number): Promise<void>; // times ascend
  end(ms: number): Promise<Blob>; // time at which the last frame ends
  cancel(): Promise<void>; // does nothing after the end
}

export const CODECS: Record<VideoKind, string> = {
  mp4: "avc1.640028", // plays in PowerPoint and Keynote
  webm: "vp09.00.41.08", // plays in all browsers
};

// Return the formats this browser can write; it encodes video only on localhost or over HTTPS.
export async function kinds(): Promise<Kind[]> {
  const size = { width: LONGEST_SIDE, height: LONGEST_SIDE, bitrate: BITS, framerate: RATE };
  const able = await Promise.all(
    (Object.keys(CODECS) as VideoKind[]).map(async (kind) =>
      globalThis.VideoEncoder &&
      (await VideoEncoder.isConfigSupported({ ...size, codec: CODECS[kind] })).supported
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
