// Connection to Python (pages/shared/server/websocket.py): one request in flight, the newest
// waiting one replaces others. Without a socket Streamlit's component state carries the messages.

import type { Data } from "./types.ts";

const TYPES = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
};

// Decode an answer into its header and arrays: { ...header, name: typed array, ..., shapes: {name:
// shape} }.
// A: answer of Python: header and arrays
export function decode<A extends object>(buffer: ArrayBuffer): A {
  const length = new DataView(buffer).getUint32(0, true);
  const { arrays, ...header } = JSON.parse(
    new TextDecoder().decode(new Uint8Array(buffer, 4, length)),
  );
  const decoded: Record<string, any> = { ...header, shapes: {} };
  let at = 4 + length;
  for (const [name, [type, shape]] of Object.entries(
    arrays as Record<string, [keyof typeof TYPES, number[]]>,
  )) {
    const Type = TYPES[type],
      bytes = shape.reduce((a, b) => a * b, Type.BYTES_PER_ELEMENT);
    decoded[name] = new Type(buffer.slice(at, at + bytes));
    decoded.shapes[name] = shape;
    at += bytes;
  }
  return decoded as A;
}

export const socketAddress = (data: Pick<Data, "base" | "socket">, path: string) =>
  data.socket === false
    ? null
    : new URL(path, new URL(data.base, location.href)).href.replace(/^http/, "ws");
export const base64Buffer = (text: string) =>
  Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

// Return the number before a component's first request. Numbers grow from one component to the
// next, so that a stale answer in the session, left by an earlier component with the same key,
// matches no request.
export const firstId = () => Date.now();

// R: type of a request
export class Link<R extends object> {
  address: string | null;
  onAnswer: (answer: ArrayBuffer) => void;
  ask: (request: R) => void;
  waiting: R | null = null;
  busy = false;
  misses = 0;
  closed = false;
  socket: WebSocket | undefined;

  // address: ws(s)://...
  // ask: fallback through a Streamlit fragment
  constructor(
    address: string | null,
    onAnswer: (answer: ArrayBuffer) => void,
    ask: (request: R) => void,
  ) {
    this.address = address;
    this.onAnswer = onAnswer;
    this.ask = ask;
    if (address) this.connect(address);
    else this.misses = 2;
  }

  get fallback() {
    return this.misses >= 2;
  }
  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect(address: string) {
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.misses = 0;
      this.busy = false;
      this.next();
    };
    this.socket.onmessage = ({ data }) => {
      if (typeof data !== "string") this.onAnswer(data);
      this.done();
    };
    this.socket.onclose = () => {
      if (this.closed) return;
      this.misses += 1;
      this.busy = false;
      if (this.fallback) this.next();
      setTimeout(() => this.connect(address), Math.min(500 * this.misses, 5000));
    };
  }

  send(request: R) {
    this.waiting = request;
    this.next();
  }

  next() {
    if (this.busy || !this.waiting || !(this.open || this.fallback)) return;
    const request = this.waiting;
    this.waiting = null;
    this.busy = true;
    if (this.open) this.socket?.send(JSON.stringify(request));
    else this.ask(request);
  }

  // Mark the request in flight as answered; also called for answers of the fallback.
  done() {
    this.busy = false;
    this.next();
  }

  close() {
    this.closed = true;
    this.socket?.close();
  }
}
