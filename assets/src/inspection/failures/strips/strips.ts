// Clicks on the neighbour strips in st.html, sent to Python: a plain link would reload the whole
// app. With a modifier key it remains a link.

import type { Mounted, SetState } from "../../../kit/types.ts";

const listeners: WeakMap<HTMLElement, (event: MouseEvent) => void> = new WeakMap();

export function render({
  parentElement,
  setTriggerValue,
}: Mounted & { setTriggerValue: SetState }) {
  unmount(parentElement);
  const click = (event: MouseEvent) => {
    const link =
      event.target instanceof Element
        ? (event.target.closest(".failure a[data-role]") as HTMLElement | null)
        : null;
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    setTriggerValue("chosen", { role: link.dataset.role, index: Number(link.dataset.index) });
  };
  listeners.set(parentElement, click);
  document.addEventListener("click", click);
}

export function unmount(element: HTMLElement) {
  const click = listeners.get(element);
  if (click) document.removeEventListener("click", click);
  listeners.delete(element);
}
