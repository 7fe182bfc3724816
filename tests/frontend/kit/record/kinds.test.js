import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds } from "../../../../assets/src/kit/record/film.ts";

const able = /** @type {{ VideoEncoder?: unknown }} */ (globalThis);

test("where a browser encodes nothing, pictures are written still", async () => {
  delete able.VideoEncoder;
  assert.deepEqual(await kinds(), ["zip"]);
});

test("films are offered of what the browser encodes", async () => {
  able.VideoEncoder = {
    isConfigSupported: async (/** @type {VideoEncoderConfig} */ { codec }) => ({
      supported: codec.startsWith("vp09"),
    }),
  };
  assert.deepEqual(await kinds(), ["webm", "zip"]);
  delete able.VideoEncoder;
});
