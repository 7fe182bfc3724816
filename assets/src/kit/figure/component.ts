// A component that is one figure: what Python mounts, made of a figure alone.
import type { App, Data, SetState, Theme } from "../types.ts";
import type { Figure } from "./figure.ts";
import { asset } from "../address.ts";
import { defineComponent, newTheme } from "../component.ts";
import { div, styled } from "../dom.ts";

/**
 * Return the render and unmount functions of a module. `create` makes the figure once; it reads the
 * data of Python by calling `data`, which returns the newest. `setState` reports to Python.
 */
export const defineFigure = <D extends Data>(
  create: (data: () => D, setState: SetState) => Figure,
) =>
  defineComponent<D, App<D>>(
    class implements App<D> {
      whole = div("lab");
      theme: Theme;
      setState: SetState;
      figure: Figure;
      readonly ready: Promise<void>;
      readonly root: HTMLElement;
      private data: D;

      constructor(root: HTMLElement, data: D) {
        this.root = root;
        this.data = data;
        this.ready = styled(root, asset("theme/figure.css")).then(() => {
          this.figure = create(
            () => this.data,
            (name, value) => this.setState(name, value),
          );
          this.whole.append(this.figure.root, this.figure.legend);
          root.append(this.whole);
        });
      }

      async update(data: D) {
        await this.ready;
        this.data = data;
        if (newTheme(this)) this.figure.setTheme(this.theme);
        this.figure.invalidate();
        this.figure.announce();
      }

      resize() {
        this.figure.resize();
      }

      close() {
        this.figure?.close();
      }
    },
  );
