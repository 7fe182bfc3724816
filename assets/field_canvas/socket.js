// The way to Python and back: one request in flight, the newest wins. Without a socket the component's own state carries it.

export class Link {
  // address: ws(s)://...; onAnswer(ArrayBuffer); ask(request): the fallback through a Streamlit fragment.
  constructor(address, onAnswer, ask) {
    Object.assign(this, { address, onAnswer, ask, waiting: null, busy: false, misses: 0, closed: false });
    if (address) this.connect(); else this.misses = 2;
  }

  get fallback() { return this.misses >= 2; }
  get open() { return this.socket?.readyState === WebSocket.OPEN; }

  connect() {
    this.socket = new WebSocket(this.address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => { this.misses = 0; this.busy = false; this.next(); };
    this.socket.onmessage = ({ data }) => { if (typeof data !== "string") this.onAnswer(data); this.done(); };
    this.socket.onclose = () => {
      if (this.closed) return;
      this.misses += 1;
      this.busy = false;
      if (this.fallback) this.next();
      setTimeout(() => this.connect(), Math.min(500 * this.misses, 5000));
    };
  }

  send(request) {
    this.waiting = request;
    this.next();
  }

  next() {
    if (this.busy || !this.waiting || !(this.open || this.fallback)) return;
    const request = this.waiting;
    this.waiting = null;
    this.busy = true;
    if (this.open) this.socket.send(JSON.stringify(request)); else this.ask(request);
  }

  // Also called when the fallback's answer arrives.
  done() {
    this.busy = false;
    this.next();
  }

  close() {
    this.closed = true;
    this.socket?.close();
  }
}
