// Exports: a figure, the arrays, a script, the link.
import type { Compare } from "./compare.ts";
import { div, drawing, el, save, tidy } from "../../../kit/dom.ts";
import { INK } from "../../../kit/colours.ts";

export function exportSection(app: Compare) {
  const arrays = el(
    "a",
    {
      class: "button",
      download: "comparison.npz",
      title: "All fields of this comparison as float64 arrays",
    },
    "arrays (npz)",
  );
  const vector = el(
    "a",
    { class: "button", download: "comparison.svg", title: "The planes as a vector drawing" },
    "drawing (SVG)",
  );
  const code = el("pre", { tabindex: 0, "aria-label": "Python script" });
  const said = el("span", { role: "status" });
  const copy = (text: string, name: string) =>
    navigator.clipboard.writeText(text).then(
      () => {
        said.textContent = `${name} copied`;
      },
      () => {
        said.textContent = "Copying is blocked. Use the address bar or the text below";
      },
    );
  app.onSettled = () => {
    arrays.href = new URL(`${app.data.base}api/compare.npz?${app.query}`, location.href).href;
    vector.href = new URL(
      `${app.data.base}api/compare.svg?${app.query}${app.theme === "dark" ? "&dark=1" : ""}`,
      location.href,
    ).href;
    code.textContent = app.snippet;
    said.textContent = "";
  };
  return el(
    "div",
    {},
    div(
      "pills",
      el("button", { onclick: () => figure(app) }, "figure (PNG)"),
      vector,
      arrays,
      el("button", { onclick: () => copy(location.href, "link") }, "copy link"),
      el("button", { onclick: () => copy(app.snippet, "script") }, "copy Python"),
      said,
    ),
    el("details", { style: "margin-top:8px" }, el("summary", {}, "Python code"), code),
  );
}

// Return a figure of all planes in a row with their titles, the difference last.
function figure(app: Compare) {
  const answer = app.answer;
  if (!answer) return;
  const ink = INK[app.theme],
    planes = app.planes(),
    gap = 24,
    head = 52,
    foot = 40;
  const side = Math.max(...planes.map((p) => p.canvas.width)),
    k = side / app.cards[0].plane.size;
  const sheet = new OffscreenCanvas(
      planes.length * (side + gap * k) + gap * k,
      side + (head + foot) * k,
    ),
    ctx = drawing(sheet);
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  planes.forEach((plane, i) => {
    const x = gap * k + i * (side + gap * k),
      { panels, pair } = app.state,
      panel = panels[i];
    const title = panel
      ? `${i + 1}  ${app.schema.losses[panel.loss].title}`
      : `${pair[0] + 1} − ${pair[1] + 1}`;
    const values = panel
      ? Object.entries(panel.hyper)
          .map(([name, v]) => `${name} = ${v === null ? "∞" : typeof v === "number" ? tidy(v) : v}`)
          .join(", ")
      : `largest ${answer.largest?.toPrecision(3) ?? "∞"}, colours ±${answer.span.toPrecision(3)}`;
    ctx.fillStyle = ink.text;
    ctx.font = `600 ${15 * k}px system-ui, sans-serif`;
    ctx.fillText(title, x, 22 * k, side);
    ctx.font = `${12 * k}px system-ui, sans-serif`;
    ctx.fillText(values, x, 41 * k, side);
    ctx.drawImage(plane.canvas, x, head * k, side, side);
  });
  ctx.font = `${12 * k}px system-ui, sans-serif`;
  ctx.fillText(
    `All planes: 0 to ${Number(answer.scale.toPrecision(3))}${answer.signed ? " either side of zero" : ""}. ${app.judgement.text.textContent}`,
    gap * k,
    sheet.height - 14 * k,
    sheet.width - 2 * gap * k,
  );
  sheet.convertToBlob({ type: "image/png" }).then((blob) => save("comparison.png", blob));
}
