// The part of plotly.js that draws landscapes. It is loaded with the first one.
export interface Camera {
  eye: { x: number; y: number; z: number };
}
export interface Drawn extends HTMLElement {
  on(name: string, act: (event: any) => void): void;
  layout: Record<string, { camera?: Camera }>;
}
export interface Plotly {
  react(box: HTMLElement, data: object[], layout: object, config: object): Promise<Drawn>;
  restyle(box: HTMLElement, change: object, traces: number[]): Promise<unknown>;
  relayout(box: HTMLElement, change: object): Promise<unknown>;
  purge(box: HTMLElement): void;
}
declare global {
  interface Window {
    Plotly?: Plotly;
  }
}

let loading: Promise<Plotly> | undefined;

/** Load plotly.js from an address; a failure is forgotten, so that the next landscape tries again. */
export const loadPlotly = (address: string): Promise<Plotly> =>
  (loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () =>
      window.Plotly ? resolve(window.Plotly) : reject(new TypeError("plotly.js is missing"));
    script.onerror = () => {
      loading = undefined;
      reject(new TypeError("plotly.js could not be loaded"));
    };
    document.head.append(script);
  }));
