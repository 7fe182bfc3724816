// Small field on Home: the plane of the Fields page without its panels. Changes do not affect the
// address, and the view is fixed.
import type { FieldData } from "../kit/plane/types.ts";
import { defineComponent } from "../kit/component.ts";
import { Fields } from "../kit/plane/plane.ts";

class SmallField extends Fields<FieldData> {
  dom() {
    const whole = super.dom();
    this.tools.remove(); // in such a small frame the buttons would cover the arrow of N
    this.legend.append(...this.resetButton());
    whole.replaceChildren(this.frame, this.legend, this.live);
    return whole;
  }

  get pans() {
    return false;
  }

  charts() {} // none

  writeLink() {}
}

export const { render, unmount } = defineComponent(SmallField);
