// The small field of Home: the plane of the fields page without its panels. What is done here stays
// here: the address is that of Home, and the view does not move.
/** @import { FieldData } from "../shared/plane/types.js" */
import { defineComponent } from "../shared/component.js";
import { Fields } from "../shared/plane/plane.js";

/** @extends {Fields<FieldData>} */
class SmallField extends Fields {
  dom() {
    const whole = super.dom();
    this.tools.remove(); // in a frame so small it lies over the arrow of N
    this.legend.append(...this.resetButton());
    whole.replaceChildren(this.frame, this.legend, this.live);
    return whole;
  }

  get pans() {
    return false;
  }

  charts() {} // none is shown

  writeLink() {}
}

export const { render, unmount } = defineComponent(SmallField);
