// Notice on the plane: why there is no force, and a button that restores one.
import { render } from "preact";

// Show a text, and a button with its action if there is a label.
export const showNotice = (
  box: HTMLElement,
  text: string,
  label: string | undefined,
  act: () => void,
) =>
  render(
    <>
      {text}
      {label && <button onClick={act}>{label}</button>}
    </>,
    box,
  );
