// Map of a report: points coloured by class or by correctness, and the image under the pointer.
// Names are inserted as text only.
/** @typedef {"circle" | "square" | "triangle" | "diamond"} Shape */
/** @typedef {{ name: string, colour: string, shape: Shape }} Entry of the legend */
/**
 * Content that report.py writes into the page; arrays are base64 of little-endian bytes.
 *
 * @typedef {object} Content
 * @property {string} points uint16 (n, 2), y upwards
 * @property {string} classes uint16
 * @property {string} indices int32, sample indices
 * @property {string} right uint8, index in VERDICTS
 * @property {string} shown uint8
 * @property {string} illustrated int32, rows with an image
 * @property {string[]} names of the classes
 * @property {string[]} colours
 * @property {string[]} sheets addresses of image sheets
 * @property {number} columns columns per sheet
 * @property {number} side side of an image in pixels
 * @property {boolean} pixelated
 */
"use strict";
(() => {
  const source = document.getElementById("content");
  if (!source) return;
  /** @type {Content} */
  const data = JSON.parse(source.textContent ?? "");
  const raw = (/** @type {string} */ text) =>
    Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const points = new Uint16Array(raw(data.points)),
    classes = new Uint16Array(raw(data.classes)),
    indices = new Int32Array(raw(data.indices));
  const right = new Uint8Array(raw(data.right)),
    shown = new Uint8Array(raw(data.shown)),
    count = classes.length;
  const illustrated = new Map(
    [...new Int32Array(raw(data.illustrated))].map((row, place) => [row, place]),
  );
  const byId = (/** @type {string} */ id) =>
    /** @type {HTMLElement} */ (document.getElementById(id));
  const canvas = /** @type {HTMLCanvasElement} */ (byId("map")),
    card = byId("card"),
    legend = byId("legend"),
    said = byId("said");
  /** @type {Shape[]} */
  const SHAPES = ["circle", "square", "triangle", "diamond"];
  const REACH = 16;
  /** @param {string} role */
  const ink = (role) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${role})`;
    document.body.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  /** @type {Entry[]} */
  const VERDICTS = [
    { name: "nearest is wrong", colour: ink("wrong"), shape: "square" },
    { name: "nearest is right", colour: ink("marked"), shape: "circle" },
    { name: "only searched, or alone in its class", colour: ink("quiet"), shape: "diamond" },
  ];
  /** @type {Record<string, Entry[]>} */
  const KINDS = {
    class: data.names.map((name, i) => ({ name, colour: data.colours[i], shape: SHAPES[i % 4] })),
    right: VERDICTS,
  };
  const view = { x: 0.5, y: 0.5, zoom: 1 };
  let by = "class",
    /** @type {Set<number>} */
    chosen = new Set(),
    hovered = -1,
    width = 0,
    height = 0,
    asked = 0;
  /** @type {{ from: [number, number], view: { x: number, y: number } } | null} */
  let hold = null;
  const kind = (/** @type {number} */ i) => (by === "class" ? classes[i] : right[i]);
  const faint = (/** @type {number} */ i) => !shown[i] || (chosen.size > 0 && !chosen.has(kind(i)));

  const low = [65535, 65535],
    high = [0, 0];
  for (let i = 0; i < 2 * count; i++) {
    low[i % 2] = Math.min(low[i % 2], points[i]);
    high[i % 2] = Math.max(high[i % 2], points[i]);
  }
  const extent = [0, 1].map((axis) => Math.min(1, (high[axis] - low[axis]) / 65535 + 0.06));
  const scale = () => Math.min(width / extent[0], height / extent[1]) * view.zoom;
  const at = (/** @type {number} */ i, s = scale()) => [
    width / 2 + (points[2 * i] / 65535 - view.x) * s,
    height / 2 - (points[2 * i + 1] / 65535 - view.y) * s,
  ];
  const radius = () =>
    Math.min(
      6,
      Math.max(2.8, (0.17 * scale()) / view.zoom / Math.sqrt(count)) * Math.sqrt(view.zoom),
    );

  /**
   * @param {CanvasRenderingContext2D} ctx
   * @param {Shape} shape
   * @param {number} x
   * @param {number} y
   * @param {number} r
   */
  function outline(ctx, shape, x, y, r) {
    ctx.beginPath();
    if (shape === "circle") ctx.arc(x, y, r, 0, 2 * Math.PI);
    else if (shape === "square") ctx.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
    else {
      const corners =
        shape === "diamond"
          ? [
              [0, -1.25],
              [1.25, 0],
              [0, 1.25],
              [-1.25, 0],
            ]
          : [
              [0, -1.25],
              [1.15, 0.85],
              [-1.15, 0.85],
            ];
      corners.forEach(([dx, dy], k) => ctx[k ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
      ctx.closePath();
    }
  }

  const pen2d = (/** @type {HTMLCanvasElement} */ sheet) =>
    /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));

  function draw() {
    asked =
      asked ||
      requestAnimationFrame(() => {
        asked = 0;
        paint();
      });
  }

  function paint() {
    const box = canvas.getBoundingClientRect(),
      ratio = devicePixelRatio || 1,
      ctx = pen2d(canvas);
    [width, height] = [box.width, box.height];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    ctx.scale(ratio, ratio);
    const style = getComputedStyle(document.body),
      r = radius(),
      s = scale();
    ctx.fillStyle = style.backgroundColor;
    ctx.fillRect(0, 0, width, height);
    const sprites = KINDS[by].map(({ colour, shape }) => {
      const side = Math.ceil(2.5 * r + 4),
        sprite = document.createElement("canvas"),
        pen = pen2d(sprite);
      sprite.width = sprite.height = side * ratio;
      pen.scale(ratio, ratio);
      outline(pen, shape, side / 2, side / 2, r);
      [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [colour, style.backgroundColor, 0.7];
      pen.fill();
      if (r > 3.5) pen.stroke(); // an outline would cover small markers
      return { sprite, side };
    });
    for (const back of [true, false]) {
      ctx.globalAlpha = back ? 0.13 : 1;
      for (let i = 0; i < count; i++) {
        if (faint(i) !== back) continue;
        const [x, y] = at(i, s),
          { sprite, side } = sprites[kind(i)];
        if (x > -9 && y > -9 && x < width + 9 && y < height + 9)
          ctx.drawImage(sprite, x - side / 2, y - side / 2, side, side);
      }
    }
    ctx.globalAlpha = 1;
    if (hovered >= 0) {
      const [x, y] = at(hovered, s);
      outline(ctx, "circle", x, y, r + 5);
      [ctx.strokeStyle, ctx.lineWidth] = [style.color, 2];
      ctx.stroke();
    }
    canvas.dataset.painted = String(Number(canvas.dataset.painted || 0) + 1);
  }

  /**
   * @param {string} tag
   * @param {string} [text]
   * @param {...(Node | string)} children
   */
  function el(tag, text, ...children) {
    const node = document.createElement(tag);
    if (text) node.textContent = text;
    node.append(...children);
    return node;
  }

  /** @param {number} i */
  function hover(i) {
    if (i === hovered) return;
    hovered = i;
    canvas.dataset.hovered = i < 0 ? "" : String(indices[i]);
    card.hidden = i < 0;
    if (i >= 0) {
      const place = illustrated.get(i),
        name = data.names[classes[i]],
        words = `sample ${indices[i]}; ${VERDICTS[right[i]].name}`;
      card.replaceChildren();
      if (place !== undefined) {
        const each = data.columns ** 2,
          on = place % each,
          thumb = el("div"),
          grown = 96 / data.side;
        thumb.className = data.pixelated ? "thumb sharp" : "thumb";
        thumb.style.backgroundImage = `url("${data.sheets[Math.floor(place / each)]}")`;
        thumb.style.backgroundSize = `${data.columns * data.side * grown}px auto`;
        thumb.style.backgroundPosition = `${-(on % data.columns) * 96}px ${-Math.floor(on / data.columns) * 96}px`;
        card.append(thumb);
      }
      card.append(el("bdi", name), el("span", words));
      said.textContent = `${name}, ${words}`;
      const [x, y] = at(i);
      card.style.left = `${Math.max(0, x > width / 2 ? x - card.offsetWidth - 14 : x + 14)}px`;
      card.style.top = `${Math.max(0, Math.min(height - card.offsetHeight, y - 30))}px`;
    }
    draw();
  }

  /**
   * @param {number} px
   * @param {number} py
   */
  function nearest(px, py) {
    let best = -1,
      reach = REACH ** 2;
    const s = scale();
    for (let i = 0; i < count; i++) {
      if (faint(i)) continue;
      const [x, y] = at(i, s),
        d = (x - px) ** 2 + (y - py) ** 2;
      if (d <= reach) [best, reach] = [i, d];
    }
    return best;
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  function beside(dx, dy) {
    // the nearest point in the direction of an arrow key
    const s = scale(),
      [px, py] = hovered < 0 ? [width / 2, height / 2] : at(hovered, s);
    let best = hovered,
      least = Infinity;
    for (let i = 0; i < count; i++) {
      if (faint(i) || i === hovered) continue;
      const [x, y] = at(i, s),
        along = (x - px) * dx + (y - py) * dy,
        across = Math.abs((x - px) * dy) + Math.abs((y - py) * dx);
      if (
        (along > 0.5 || hovered < 0) &&
        along + 2 * across < least &&
        x > 0 &&
        y > 0 &&
        x < width &&
        y < height
      )
        [best, least] = [i, along + 2 * across];
    }
    return best;
  }

  /** @param {number} factor */
  function zoom(factor, px = width / 2, py = height / 2) {
    const before = scale();
    view.zoom = Math.min(40, Math.max(1, view.zoom * factor));
    const shift = 1 / before - 1 / scale();
    move(view.x + (px - width / 2) * shift, view.y - (py - height / 2) * shift);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  function move(x, y) {
    const inside = (/** @type {number} */ value) =>
      view.zoom === 1 ? 0.5 : Math.min(1, Math.max(0, value));
    [view.x, view.y] = [inside(x), inside(y)];
    hover(-1);
    draw();
  }

  /** @param {Entry} entry */
  function mark({ colour, shape }) {
    const ns = "http://www.w3.org/2000/svg",
      svg = document.createElementNS(ns, "svg"),
      path = document.createElementNS(ns, "path");
    svg.setAttribute("viewBox", "0 0 14 14");
    svg.setAttribute("width", "14");
    svg.setAttribute("height", "14");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("fill", colour);
    path.setAttribute(
      "d",
      {
        circle: "M7 2a5 5 0 1 1 0 10a5 5 0 1 1 0-10",
        square: "M2.5 2.5h9v9h-9z",
        triangle: "M7 1.5l5.5 10h-11z",
        diamond: "M7 1l6 6l-6 6l-6-6z",
      }[shape],
    );
    svg.append(path);
    return svg;
  }

  function explain() {
    /** @type {Map<number, number>} */
    const counts = new Map();
    for (let i = 0; i < count; i++)
      if (shown[i]) counts.set(kind(i), (counts.get(kind(i)) || 0) + 1);
    legend.replaceChildren(
      ...KINDS[by]
        .map((entry, k) => /** @type {const} */ ([entry, k]))
        .filter(([, k]) => counts.has(k))
        .map(([entry, k]) => {
          const number = el("small", (counts.get(k) ?? 0).toLocaleString("en")),
            button = el("button", "", mark(entry), el("bdi", entry.name), number);
          button.setAttribute("aria-pressed", String(chosen.has(k)));
          button.className = chosen.size && !chosen.has(k) ? "faint" : "";
          button.onclick = () => {
            if (!chosen.delete(k)) chosen.add(k);
            hover(-1);
            explain();
            draw();
          };
          return button;
        }),
    );
  }

  /**
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    hold = { from: place(event), view: { ...view } };
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    hold = null;
  };
  canvas.onpointermove = (event) => {
    const [x, y] = place(event);
    if (!hold) hover(nearest(x, y));
    else if (Math.hypot(x - hold.from[0], y - hold.from[1]) > 4)
      move(hold.view.x - (x - hold.from[0]) / scale(), hold.view.y + (y - hold.from[1]) / scale());
  };
  canvas.onpointerleave = () => hover(-1);
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return; // the page scrolls
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), ...place(event));
    },
    { passive: false },
  );
  canvas.onkeydown = (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ];
    if (step) {
      event.preventDefault();
      hover(beside(step[0], step[1]));
    }
    if (event.key === "Escape") hover(-1);
  };
  byId("closer").onclick = () => zoom(1.5);
  byId("farther").onclick = () => zoom(1 / 1.5);
  byId("whole").onclick = () => zoom(1e-9);
  byId("colour").onchange = (event) => {
    by = /** @type {HTMLSelectElement} */ (event.target).value;
    chosen = new Set();
    hover(-1);
    explain();
    draw();
  };
  matchMedia("(prefers-color-scheme: dark)").onchange = draw;
  addEventListener("beforeprint", paint);
  addEventListener("afterprint", paint);
  new ResizeObserver(draw).observe(canvas);
  explain();
  draw();
})();
