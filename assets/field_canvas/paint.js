// Painting only: every number comes from Python. Plane coordinates have y upwards; the canvas is square.

import { INK, LETTER, POINTS, halo, niceStep, rampColour } from "../shared/ink.js";

// The two pictures of an answer, n x n: colour, and a veil over what receives no force. Made once per answer.
export function rasterise(field, theme) {
  const { n, shade, active: bits } = field;
  const table = Array.from({ length: 256 }, (_, i) => rampColour(i / 255, theme));
  const colour = new ImageData(n, n), veil = new ImageData(n, n);
  for (let row = 0; row < n; row++) {
    for (let col = 0; col < n; col++) {
      const from = row * n + col, to = ((n - 1 - row) * n + col) * 4;
      const [r, g, b] = table[shade[from]];
      colour.data.set([r, g, b, 255], to);
      veil.data[to + 3] = bits[from >> 3] & (128 >> (from & 7)) ? 0 : 255;
    }
  }
  return { colour: bitmap(colour), veil: bitmap(veil) };
}

function bitmap(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export function toPixels(view, size) {
  const [x, y, half] = view, k = size / (2 * half);
  return ([px, py]) => [(px - x + half) * k, (y + half - py) * k];
}

export function fromPixels(view, size) {
  const [x, y, half] = view, k = (2 * half) / size;
  return ([u, v]) => [x - half + u * k, y + half - v * k];
}

export function paint(ctx, size, scene, field, pictures, theme) {
  const ink = INK[theme];
  ctx.clearRect(0, 0, size, size);
  if (field) {
    // The last answer may belong to a view that has moved on: draw it where it belongs.
    const at = toPixels(scene.view, size), [fx, fy, fh] = field.view;
    const [left, top] = at([fx - fh, fy + fh]), [right] = at([fx + fh, fy]);
    const side = right - left;
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(pictures.colour, left, top, side, side);
    if (scene.region) hatch(ctx, size, pictures.veil, left, top, side, ink);
    grid(ctx, size, scene.view, ink);
    if (scene.region) boundaries(ctx, field, left, top, side, ink);
    if (field.radius && scene.discs) discs(ctx, scene, field.radius, at, size, ink);
    if (scene.arrows) arrows(ctx, field.arrows, left, top, side, ink);
  } else {
    grid(ctx, size, scene.view, ink);
  }
  triangle(ctx, scene, size, ink);
  if (field) forces(ctx, scene, field, size, ink);
  points(ctx, scene, size, ink);
}

let overlay;
function hatch(ctx, size, veil, left, top, side, ink) {
  const scale = ctx.getTransform().a, pixels = Math.round(size * scale);
  if (!overlay || overlay.width !== pixels) overlay = new OffscreenCanvas(pixels, pixels);
  const o = overlay.getContext("2d");
  o.setTransform(scale, 0, 0, scale, 0, 0);
  o.globalCompositeOperation = "copy";
  o.fillStyle = ink.veil;
  o.fillRect(0, 0, size, size);
  o.globalCompositeOperation = "source-over";
  o.strokeStyle = ink.hatch;
  o.lineWidth = 1;
  o.beginPath();
  for (let x = -size; x < size; x += 9) { o.moveTo(x, size); o.lineTo(x + size, 0); }
  o.stroke();
  o.globalCompositeOperation = "destination-in";
  o.drawImage(veil, left, top, side, side);
  ctx.drawImage(overlay, 0, 0, size, size);
}

function grid(ctx, size, view, ink) {
  const [x, y, half] = view, step = niceStep(2 * half), at = toPixels(view, size);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  ctx.font = "11px system-ui, sans-serif";
  ctx.lineWidth = 1;
  for (const [axis, centre] of [[0, x], [1, y]]) {
    for (let k = Math.ceil((centre - half) / step); k * step <= centre + half; k++) {
      const value = k * step, place = Math.round(at(axis ? [0, value] : [value, 0])[axis]) + 0.5;
      ctx.strokeStyle = ink.grid;
      ctx.beginPath();
      if (axis) { ctx.moveTo(0, place); ctx.lineTo(size, place); } else { ctx.moveTo(place, 0); ctx.lineTo(place, size); }
      ctx.stroke();
      if (place < 16 || place > size - 16) continue;
      const label = value.toFixed(digits);
      ctx.textAlign = axis ? "left" : "center";
      ctx.textBaseline = axis ? "middle" : "alphabetic";
      halo(ctx, label, axis ? 5 : place, axis ? place : size - 5, ink.text, ink.rim);
    }
  }
}

function boundaries(ctx, field, left, top, side, ink) {
  let at = 0;
  const line = (count) => {
    ctx.beginPath();
    for (let i = 0; i < count; i++, at++) {
      const x = left + (field.corners[2 * at] / 65535) * side, y = top + side - (field.corners[2 * at + 1] / 65535) * side;
      if (i) ctx.lineTo(x, y); else ctx.moveTo(x, y);
    }
    ctx.stroke();
  };
  ctx.strokeStyle = ink.outer;
  ctx.lineWidth = 1.75;
  ctx.setLineDash([]);
  field.outer.forEach(line);
  ctx.setLineDash([6, 4]);
  field.inner.forEach(line);
  ctx.setLineDash([]);
}

function discs(ctx, scene, radius, at, size, ink) {
  const pixels = (radius * size) / (2 * scene.view[2]);
  ctx.strokeStyle = ink.disc;
  ctx.lineWidth = 1.75;
  ctx.setLineDash([2, 4]);
  for (const name of ["anchor", "positive"]) {
    const [x, y] = at(scene[name]);
    ctx.beginPath();
    ctx.arc(x, y, pixels, 0, 2 * Math.PI);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

function arrows(ctx, values, left, top, side, ink) {
  const cell = side / 20, longest = cell * 0.86;
  const path = new Path2D();
  for (let row = 0; row < 20; row++) {
    for (let col = 0; col < 20; col++) {
      const i = 2 * (row * 20 + col), fx = values[i] / 127, fy = -values[i + 1] / 127;
      const length = Math.hypot(fx, fy) * longest;
      if (length < 1) continue;
      const x = left + (col + 0.5) * cell, y = top + side - (row + 0.5) * cell;
      const angle = Math.atan2(fy, fx), hx = (Math.cos(angle) * length) / 2, hy = (Math.sin(angle) * length) / 2;
      const head = Math.min(5, 1.5 + length / 4);
      path.moveTo(x - hx, y - hy);
      path.lineTo(x + hx, y + hy);
      for (const turn of [2.6, -2.6]) {
        path.moveTo(x + hx, y + hy);
        path.lineTo(x + hx + head * Math.cos(angle + turn), y + hy + head * Math.sin(angle + turn));
      }
    }
  }
  for (const [colour, width] of [[ink.glow, 3], [ink.arrow, 1.3]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.stroke(path);
  }
}

function triangle(ctx, scene, size, ink) {
  const at = toPixels(scene.view, size), [a, p, n] = POINTS.map((k) => at(scene[k]));
  ctx.lineWidth = 1.4;
  for (const [from, to, colour, dash] of [[a, p, ink.positive, []], [a, n, ink.negative, [4, 4]], [p, n, ink.negative, [4, 4]]]) {
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

// Big arrows: 70 px for a force of 1, growing ever slower; the number beside tells the magnitude.
function forces(ctx, scene, field, size, ink) {
  const at = toPixels(scene.view, size), labels = [];
  POINTS.forEach((name, i) => {
    const [fx, fy] = field.forces[i], magnitude = Math.hypot(fx, fy);
    if (!(magnitude > 1e-9)) return;
    const [x, y] = at(scene[name]), length = 150 * (1 - Math.exp(-magnitude / 1.6)) + 16;
    const ux = fx / magnitude, uy = -fy / magnitude, tx = x + ux * length, ty = y + uy * length;
    ctx.lineCap = "round";
    for (const [colour, width] of [[ink.rim, 7], [ink.force, 4]]) {
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = width;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(tx - ux * 9, ty - uy * 9);
      ctx.stroke();
      ctx.beginPath();
      const grow = colour === ink.rim ? 2 : 0;
      ctx.moveTo(tx + ux * grow, ty + uy * grow);
      ctx.lineTo(tx - ux * 14 - uy * (7 + grow), ty - uy * 14 + ux * (7 + grow));
      ctx.lineTo(tx - ux * 14 + uy * (7 + grow), ty - uy * 14 - ux * (7 + grow));
      ctx.fill();
    }
    ctx.lineCap = "butt";
    const inside = (v, room) => Math.min(Math.max(v, room), size - room);
    const left = inside(tx + ux * 10, 34), align = ux < -0.3 ? "right" : ux > 0.3 ? "left" : "center";
    let top = inside(ty + uy * 14, 12); // a number that would cover another steps aside, away from the edge
    const step = top < size - 42 ? 15 : -15;
    while (labels.some((l) => Math.abs(l.left - left) < 42 && Math.abs(l.top - top) < 14)) top += step;
    labels.push({ left, top, align, text: magnitude.toPrecision(3) });
  });
  ctx.font = "600 12px system-ui, sans-serif"; // numbers above all arrows
  ctx.textBaseline = "middle";
  for (const { left, top, align, text } of labels) {
    ctx.textAlign = align;
    halo(ctx, text, left, top, ink.forceText, ink.rim, 4);
  }
}

function points(ctx, scene, size, ink) {
  const at = toPixels(scene.view, size);
  for (const name of POINTS) {
    const [x, y] = at(scene[name]);
    ctx.fillStyle = ink[name];
    ctx.strokeStyle = ink.rim;
    ctx.lineWidth = 2.5;
    ctx.beginPath();
    if (name === "negative") ctx.rect(x - 9, y - 9, 18, 18); else ctx.arc(x, y, 10, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
    if (name === scene.probe) {
      ctx.strokeStyle = ink[name];
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.arc(x, y, 15, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.font = "700 12px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = ink.rim;
    ctx.fillText(LETTER[name], x, y + 0.5);
  }
}
