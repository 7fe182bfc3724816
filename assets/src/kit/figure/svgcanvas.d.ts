// The parts of svgcanvas that svg.ts uses; the package has no types of its own.
declare module "svgcanvas" {
  export interface Context extends CanvasRenderingContext2D {
    getSerializedSvg(): string;
    __currentElement: Element;
    __applyStyleToCurrentElement(kind: "fill" | "stroke"): void;
  }
  export const Context: new (size: { width: number; height: number }) => Context;
}
