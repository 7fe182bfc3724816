import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds } from "../../../../assets/src/kit/film/formats.ts";

const browser = globalThis as { VideoEncoder?: unknown };

test("a browser without a video encoder writes images only", async () => {
  delete browser.VideoEncoder;
  assert.deepEqual(await kinds(), ["zip"]);
});

test("video formats are offered if the browser encodes them", async () => {
  browser.VideoEncoder = {
    isConfigSupported: async ({ codec }: VideoEncoderConfig) => ({
      supported: codec.startsWith("vp09"),
    }),
  };
  assert.deepEqual(await kinds(), ["webm", "zip"]);
  delete browser.VideoEncoder;
});
