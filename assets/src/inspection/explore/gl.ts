// Points on a WebGL2 canvas: one draw call for the background, one for the highlighted points.
import type { Cloud } from "./cloud.ts";
import type { Marks, Mask } from "./types.ts";
import type { Drawn } from "./order.ts";
import { Order } from "./order.ts";
const TINY = 2; // radius in pixels below which all shapes look like circles
const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 start;
layout(location = 1) in vec2 end;
layout(location = 2) in float key;
layout(location = 3) in float state;
uniform sampler2D palette;
uniform vec2 middle, scale;
uniform float share, size;
uniform int shaped;
flat out vec4 colour;
flat out int kind, chosen;
void main() {
  chosen = int(state + .5) >> 1;
  gl_Position = vec4((mix(start, end, share) - middle) * scale, 0, 1);
  gl_PointSize = size;
  colour = texelFetch(palette, ivec2(int(key + .5) & 255, 0), 0);
  kind = shaped == 0 ? 0 : shaped == 1 ? int(key + .5) & 3 : int(key + .5) == 0 ? 4 : 0;
}`;
// Shapes as distances to the edge, in radii: circle, square, triangle, diamond, cross.
const FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 colour;
flat in int kind, chosen;
uniform float size, radius, veil, rim;
uniform vec3 paper, ink;
out vec4 paint;
float away(vec2 p) {
  if (kind == 0) return length(p) - 1.;
  vec2 a = abs(p);
  if (kind == 1) return max(a.x, a.y) - .88;
  if (kind == 2) return max(p.y - .75, (a.x * 1.75 - p.y - 1.2) / 2.02);
  if (kind == 3) return (a.x + a.y - 1.25) * .71;
  vec2 d = abs(vec2(p.x + p.y, p.x - p.y)) * .71;
  return max(min(d.x, d.y) - .34, max(d.x, d.y) - 1.2);
}
void main() {
  float d = away((gl_PointCoord - .5) * size / radius) * radius;
  float line = chosen == 1 ? .8 : rim;
  float inside = clamp(.5 - d, 0., 1.), fill = clamp(.5 - d - line, 0., 1.);
  vec3 edge = chosen == 1 ? ink : paper;
  float alpha = inside * veil * colour.a;
  paint = vec4(mix(edge, colour.rgb, line > 0. ? fill : 1.) * alpha, alpha);
}`;

const UNIFORMS = "palette middle scale share size shaped radius veil rim paper ink".split(" ");

// Draws on a canvas until its context is lost; another painter then takes its place.
export class Painter {
  private readonly canvas: HTMLCanvasElement;
  private readonly gl: WebGL2RenderingContext;
  private readonly at: Record<string, WebGLUniformLocation | null>;
  private readonly order = new Order();
  private readonly buffers = new Map<number, { buffer: WebGLBuffer; array: ArrayBufferView }>();
  private rows: WebGLBuffer | null = null;
  private sent: Drawn | null = null; // rows in the buffer
  private shown: Mask | null = null; // colours in the texture

  constructor(canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", {
      alpha: true,
      antialias: false,
      premultipliedAlpha: true,
    });
    if (!gl) throw new Error("no WebGL2");
    this.canvas = canvas;
    this.gl = gl;
    const program = gl.createProgram();
    for (const [kind, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
      const shader = gl.createShader(kind) as WebGLShader;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(gl.getProgramInfoLog(program) ?? "");
    gl.useProgram(program);
    this.at = Object.fromEntries(
      UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]),
    );
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const kind of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, kind, gl.NEAREST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  // Upload an attribute of all points; skipped if it is the same array.
  private attribute(
    place: number,
    array: ArrayBufferView<ArrayBuffer>,
    size: number,
    type: number,
    normalised: boolean,
  ) {
    const { gl } = this,
      known = this.buffers.get(place);
    const buffer = known?.buffer ?? gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    if (known?.array !== array) gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
    this.buffers.set(place, { buffer, array });
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, normalised, 0, 0);
  }

  // Upload the rows to draw; skipped if they are unchanged.
  private elements(drawn: Drawn) {
    const { gl } = this;
    this.rows ??= gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.rows);
    if (this.sent !== drawn) gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, drawn.rows, gl.STATIC_DRAW);
    this.sent = drawn;
  }

  paint(cloud: Cloud, marks: Marks) {
    const { keys, states, table, shaped, middle, scale, radius, faint, paper, ink } = marks;
    const { gl, at, canvas } = this;
    if (gl.isContextLost()) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (this.shown !== table) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
      this.shown = table;
    }
    this.attribute(0, cloud.from, 2, gl.UNSIGNED_SHORT, true);
    this.attribute(1, cloud.to, 2, gl.UNSIGNED_SHORT, true);
    this.attribute(
      2,
      keys,
      1,
      keys instanceof Uint16Array ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE,
      false,
    );
    this.attribute(3, states, 1, gl.UNSIGNED_BYTE, false);
    const drawn = this.order.rowsToDraw(cloud, states, marks.window),
      plain = radius < TINY;
    this.elements(drawn);
    gl.uniform2fv(at.middle, middle);
    gl.uniform2fv(at.scale, scale);
    gl.uniform1f(at.share, cloud.share);
    gl.uniform1f(at.radius, radius);
    gl.uniform1f(at.size, Math.ceil((plain ? 2 : 2.6) * radius + 1));
    gl.uniform1f(at.rim, radius > 3 ? 0.8 : 0);
    gl.uniform1i(at.shaped, plain ? 0 : shaped);
    gl.uniform3fv(at.paper, paper);
    gl.uniform3fv(at.ink, ink);
    for (const [veil, first, past] of [
      [faint, 0, drawn.front],
      [1, drawn.front, drawn.rows.length],
    ] as const) {
      gl.uniform1f(at.veil, veil);
      if (past > first) gl.drawElements(gl.POINTS, past - first, gl.UNSIGNED_INT, 4 * first);
    }
  }
}
