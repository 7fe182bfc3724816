import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Link, base64Buffer, decode, socketAddress } from "../../../assets/src/kit/socket.ts";

// Pack an answer like pages/shared/server/wire.py: uint32 length, JSON, arrays in order.
function packed(header, ...arrays) {
  const json = new TextEncoder().encode(JSON.stringify(header)),
    head = new Uint8Array(4);
  new DataView(head.buffer).setUint32(0, json.length, true);
  const parts = [head, json, ...arrays.map((a) => new Uint8Array(a.buffer))];
  return new Uint8Array(parts.flatMap((part) => [...part])).buffer;
}

test("an answer is its header with typed arrays and their shapes", () => {
  const answer = decode(
    packed(
      { id: 7, arrays: { xy: ["float32", [2, 2]], bits: ["uint8", [3]], none: ["int16", [0, 2]] } },
      new Float32Array([0.5, -1, 2, 1e9]),
      new Uint8Array([1, 0, 255]),
    ),
  );
  assert.equal(answer.id, 7);
  assert.deepEqual(answer.xy, new Float32Array([0.5, -1, 2, 1e9]));
  assert.deepEqual(answer.bits, new Uint8Array([1, 0, 255]));
  assert.deepEqual(answer.none, new Int16Array());
  assert.deepEqual(answer.shapes, { xy: [2, 2], bits: [3], none: [0, 2] });
  assert.equal("arrays" in answer, false);
});

test("an array may begin where its type could not be read in place", () => {
  for (const id of [1, 12, 123, 1234]) {
    const answer = decode(packed({ id, arrays: { v: ["uint32", [1]] } }, new Uint32Array([id])));
    assert.deepEqual([...answer.v], [id]);
  }
});

test("text in a header keeps its letters", () => {
  assert.equal(decode(packed({ name: "ρ × μ₂", arrays: {} })).name, "ρ × μ₂");
});

test("base64 is what a socket would have brought", () => {
  const buffer = packed({ id: 3, arrays: { v: ["int8", [2]] } }, new Int8Array([-1, 127]));
  const fallback = base64Buffer(Buffer.from(buffer).toString("base64"));
  assert.deepEqual(decode(fallback), decode(buffer));
});

test("the address of a socket follows the page's, and may be declined", () => {
  globalThis.location = { href: "https://lab.example/app/fields?loss=x" };
  assert.equal(socketAddress({ base: "/app/" }, "api/field"), "wss://lab.example/app/api/field");
  assert.equal(socketAddress({ base: "/app/", socket: false }, "api/field"), null);
  delete globalThis.location;
});

class Socket {
  static OPEN = 1;
  static all = [];
  readyState = 0;
  sent = [];
  constructor(address) {
    this.address = address;
    Socket.all.push(this);
  }
  open() {
    this.readyState = Socket.OPEN;
    this.onopen();
  }
  send(text) {
    this.sent.push(JSON.parse(text).id);
  }
  answer() {
    this.onmessage({ data: new ArrayBuffer(4) });
  }
  drop() {
    this.readyState = 3;
    this.onclose();
  }
  close() {
    this.drop();
  }
}

let genuine;
beforeEach(() => {
  genuine = globalThis.WebSocket;
  globalThis.WebSocket = Socket;
  Socket.all = [];
});
afterEach(() => {
  globalThis.WebSocket = genuine;
});

test("one request is in flight, and of those that wait the newest goes", () => {
  let answers = 0;
  const link = new Link("ws://x", () => (answers += 1), assert.fail);
  const [socket] = Socket.all;
  link.send({ id: 1 });
  assert.deepEqual(socket.sent, []);
  socket.open();
  link.send({ id: 2 });
  link.send({ id: 3 });
  assert.deepEqual(socket.sent, [1]);
  socket.answer();
  socket.answer();
  assert.deepEqual([socket.sent, answers], [[1, 3], 2]);
});

test("two failures in a row, and the page itself carries the requests", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [],
    link = new Link("ws://x", assert.fail, (request) => asked.push(request.id));
  link.send({ id: 1 });
  Socket.all[0].drop();
  assert.deepEqual([asked, link.fallback], [[], false]);
  t.mock.timers.tick(500);
  Socket.all[1].drop();
  assert.deepEqual([asked, link.fallback], [[1], true]);
  link.send({ id: 2 });
  assert.deepEqual(asked, [1]);
  link.done();
  assert.deepEqual(asked, [1, 2]);
  t.mock.timers.tick(1000);
  Socket.all[2].open(); // a socket opens after all
  link.send({ id: 3 });
  assert.deepEqual([asked, Socket.all[2].sent], [[1, 2], [3]]);
  Socket.all[2].drop();
  assert.equal(link.fallback, false); // failures are counted from zero again
});

test("without an address nothing is opened; what is closed stays closed", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [];
  new Link(null, assert.fail, (request) => asked.push(request.id)).send({ id: 1 });
  assert.deepEqual([asked, Socket.all.length], [[1], 0]);
  new Link("ws://x", assert.fail, assert.fail).close();
  t.mock.timers.tick(60_000);
  assert.equal(Socket.all.length, 1);
});
