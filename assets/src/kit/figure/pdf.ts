// PDF of a recorded SVG: vector graphics, and text in embedded fonts that can be selected. Loaded
// with the first export.
import { jsPDF } from "jspdf";
import { svg2pdf } from "svg2pdf.js";
import { asset } from "../address.ts";
import { drawing } from "../dom.ts";

const POINTS = 0.75, // of a CSS pixel
  SHARP = 1.5; // pixels of an enlarged image per CSS pixel

const fonts: Record<string, Promise<string>> = {};

// Return a font as base64; Python serves those of matplotlib.
const fontOf = (name: string): Promise<string> =>
  (fonts[name] ??= fetch(asset(`kit/fonts/${name}.ttf`)).then(async (reply) => {
    if (!reply.ok) throw new Error(`the font ${name} of the PDF is not served (${reply.status})`);
    const reader = new FileReader(),
      { promise: read, resolve } = Promise.withResolvers();
    reader.addEventListener("load", resolve);
    reader.readAsDataURL(await reply.blob());
    await read;
    return String(reader.result).replace(/^.*,/, "");
  }));

// Return the embedded font that is closest to that of a text.
function faceOf(text: SVGTextElement): string {
  const weight = text.getAttribute("font-weight");
  if (text.getAttribute("font-style") === "italic") return "DejaVuSerif-Italic";
  return weight === "bold" || Number(weight) >= 600 ? "DejaVuSans-Bold" : "DejaVuSans";
}

// Write a text in an embedded font, as wide as on the screen, from its left end.
function embed(pdf: jsPDF, text: SVGTextElement): void {
  const of = (name: string) => text.getAttribute(name) ?? "",
    size = Number.parseFloat(of("font-size")),
    ruler = drawing(new OffscreenCanvas(1, 1));
  ruler.font = `${of("font-style")} ${of("font-weight")} ${size}px ${of("font-family")}`;
  pdf.setFont(faceOf(text)).setFontSize(size);
  const { width } = ruler.measureText(text.textContent),
    stretch = width / pdf.getTextWidth(text.textContent) || 1,
    share = { middle: 0.5, end: 1 }[of("text-anchor")] ?? 0,
    move = `translate(${Number(of("x")) - share * width} ${of("y")})`;
  text.setAttribute("transform", `${of("transform")} ${move} scale(${stretch} 1)`);
  text.setAttribute("font-family", faceOf(text));
  for (const name of ["x", "y", "text-anchor", "font-style", "font-weight", "text-decoration"])
    text.removeAttribute(name);
}

// Enlarge an image of few pixels as the screen does; programs that show PDF draw its pixels.
async function smooth(element: SVGImageElement): Promise<void> {
  const image = new Image(),
    [width, height] = ["width", "height"].map((side) =>
      Math.round(SHARP * Number(element.getAttribute(side))),
    );
  image.src = element.href.baseVal;
  await image.decode();
  if (image.width >= width) return;
  const canvas = document.createElement("canvas"),
    ctx = drawing(canvas);
  [canvas.width, canvas.height] = [width, height];
  ctx.imageSmoothingQuality = "high";
  ctx.drawImage(image, 0, 0, width, height);
  element.setAttribute("xlink:href", canvas.toDataURL());
}

/** Return a PDF of one page of the size of an SVG that svg.ts has recorded. */
export async function pdfOf(source: string): Promise<Blob> {
  const svg = new DOMParser().parseFromString(source, "image/svg+xml")
      .documentElement as unknown as SVGSVGElement,
    { width, height } = svg.viewBox.baseVal,
    format = [width * POINTS, height * POINTS],
    orientation = width > height ? "landscape" : "portrait",
    pdf = new jsPDF({ unit: "pt", format, orientation, compress: true, putOnlyUsedFonts: true });
  const texts = [...svg.querySelectorAll("text")],
    faces = [...new Set(texts.map(faceOf))],
    files = await Promise.all(faces.map(fontOf));
  faces.forEach((face, i) => {
    pdf.addFileToVFS(face, files[i]);
    pdf.addFont(face, face, "normal");
  });
  for (const text of texts) embed(pdf, text);
  await Promise.all([...svg.querySelectorAll<SVGImageElement>("g image")].map(smooth));
  await svg2pdf(svg, pdf, { width: format[0], height: format[1] });
  return pdf.output("blob");
}
