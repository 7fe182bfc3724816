// The parts of svgcanvas that svg.ts uses; the package has no types of its own.
declare module "svgcanvas" {
  export interface Recording extends CanvasRenderingContext2D {
    getSvg(): SVGSVGElement;
    getSerializedSvg(): string;
    __currentElement: Element;
    lineDash: unknown; // a string if dashes are set
  }
  export const Context: new (size: { width: number; height: number }) => Recording;
}
