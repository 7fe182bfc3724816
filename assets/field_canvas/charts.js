// Two small charts beside the plane: the laws of pull and push, and the energy along a cut.
import { INK, halo, niceStep } from "../shared/ink.js";

const ROOM = { left: 40, right: 10, top: 10, bottom: 30 };

// Sizes are measured once and when they change: asking for them in every frame would force a layout.
const sizes = new WeakMap();
const watcher = new ResizeObserver((entries) => entries.forEach(({ target, contentRect: { width, height } }) => { if (width) sizes.set(target, { width, height }); }));
function measured(canvas) {
  watcher.observe(canvas);
  return { width: canvas.clientWidth, height: canvas.clientHeight };
}

// A canvas sharp on any screen; returns its context and size in CSS pixels.
function prepared(canvas) {
  const scale = Math.min(devicePixelRatio || 1, 2), { width, height } = sizes.get(canvas) ?? measured(canvas);
  if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return { ctx, width, height };
}

function axes({ ctx, width, height }, ink, [x0, x1], [y0, y1], xName, yName) {
  const px = (x) => ROOM.left + ((x - x0) / (x1 - x0)) * (width - ROOM.left - ROOM.right);
  const py = (y) => height - ROOM.bottom - ((y - y0) / (y1 - y0)) * (height - ROOM.top - ROOM.bottom);
  ctx.font = "11px system-ui, sans-serif";
  ctx.lineWidth = 1;
  const digits = (step) => Math.max(0, -Math.floor(Math.log10(step)));
  const xs = niceStep(x1 - x0, 5), ys = niceStep(y1 - y0, 4);
  ctx.strokeStyle = ink.axis;
  ctx.fillStyle = ink.text;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  for (let k = Math.ceil(x0 / xs); k * xs <= x1 + 1e-9; k++) ctx.fillText((k * xs).toFixed(digits(xs)), px(k * xs), height - ROOM.bottom + 4);
  ctx.fillText(xName, (ROOM.left + width) / 2, height - 12);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let k = Math.ceil(y0 / ys); k * ys <= y1 + 1e-9; k++) {
    ctx.beginPath();
    ctx.moveTo(ROOM.left, Math.round(py(k * ys)) + 0.5);
    ctx.lineTo(width - ROOM.right, Math.round(py(k * ys)) + 0.5);
    ctx.stroke();
    ctx.fillText((k * ys).toFixed(digits(ys)), ROOM.left - 5, py(k * ys));
  }
  ctx.save();
  ctx.translate(9, (height - ROOM.bottom + ROOM.top) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillText(yName, 0, 0);
  ctx.restore();
  ctx.save();
  ctx.beginPath();
  ctx.rect(ROOM.left, ROOM.top - 4, width - ROOM.left - ROOM.right, height - ROOM.top - ROOM.bottom + 8);
  ctx.clip();
  return { px, py, done: () => ctx.restore() };
}

function curve(ctx, xs, ys, px, py, colour, dash, width = 2) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ys.forEach((y, i) => { const at = [px(xs(i)), py(Math.min(Math.max(y, -1e6), 1e6))]; if (i) ctx.lineTo(...at); else ctx.moveTo(...at); });
  ctx.stroke();
  ctx.setLineDash([]);
}

// Pull and push against the length of their own edge, the present lengths marked. Inactive triplets: open marks.
export function lawsChart(canvas, field, theme) {
  const at = prepared(canvas), { ctx } = at, ink = INK[theme], k = field.shapes.laws[1], { reach, laws, edges } = field;
  const law = (i) => laws.subarray(i * k, (i + 1) * k), x = (i) => ((i + 1) * reach) / k;
  const value = (i, d) => { const t = Math.min(Math.max((d / reach) * k - 1, 0), k - 1), j = Math.min(Math.floor(t), k - 2), f = t - j; return law(i)[j] * (1 - f) + law(i)[j + 1] * f; };
  const marks = [["ap", ink.positive, []], ["an", ink.negative, []], ["pn", ink.negative, [4, 4]]].map(([edge, colour, dash], i) => ({ edge, colour, dash, law: law(i), here: value(i, edges[edge]) }));
  const tops = marks.map((m) => m.here), high = Math.max(1, ...tops) * 1.3, low = Math.min(0, ...tops) * 1.3;
  const { px, py, done } = axes(at, ink, [0, reach], [low, high], "length of the edge d", "force");
  const shown = marks.filter((m) => m.law.some((v) => Math.abs(v) > 1e-9));
  for (const m of shown) curve(ctx, x, m.law, px, py, m.colour, m.dash);
  for (const m of shown) {
    ctx.fillStyle = field.hit ? m.colour : ink.page;
    ctx.strokeStyle = field.hit ? ink.rim : m.colour;
    ctx.lineWidth = 2;
    ctx.beginPath();
    if (m.edge === "ap") ctx.arc(px(edges.ap), py(m.here), 5, 0, 7); else ctx.rect(px(edges[m.edge]) - 4.5, py(m.here) - 4.5, 9, 9);
    ctx.fill();
    ctx.stroke();
  }
  done();
  canvas.setAttribute("aria-label", `Forces against edge length: ${shown.map((m) => `${m.edge === "ap" ? "pull" : "push"} ${m.here.toPrecision(3)} at d(${m.edge.toUpperCase()}) = ${edges[m.edge].toPrecision(3)}`).join("; ")}`);
}

// Energy along the cut: before the clamp thin, clamped bold.
export function cutChart(canvas, field, scene, theme) {
  const at = prepared(canvas), { ctx } = at, ink = INK[theme], k = field.shapes.cut[1], raw = field.cut.subarray(0, k), clamped = field.cut.subarray(k);
  const [x0, y0, x1, y1] = scene.line, length = Math.hypot(x1 - x0, y1 - y0) || 1, x = (i) => (i / (k - 1)) * length;
  const top = Math.max(...clamped), bottom = Math.min(...raw), high = Math.max(top * 1.15, 0.2), low = Math.max(Math.min(bottom, 0), -high) * 1.1;
  const { px, py, done } = axes(at, ink, [0, length], [low, high], "along the cut", "energy");
  curve(ctx, x, raw, px, py, ink.residual, [3, 3], 1.5);
  curve(ctx, x, clamped, px, py, ink.contour, [], 2.2);
  done();
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  halo(ctx, "dashed: before the clamp", ROOM.left + 6, ROOM.top, ink.text, ink.rim);
  canvas.setAttribute("aria-label", `Energy along the cut of length ${length.toPrecision(3)}: loss between ${Math.min(...clamped).toPrecision(3)} and ${top.toPrecision(3)}, before the clamp down to ${bottom.toPrecision(3)}`);
}
