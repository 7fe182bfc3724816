// Motions of a page's sliders, for recordings.
import type { Filmed, Motion } from "../types.ts";

// Return one motion, from end to end and back, per slider that acts immediately.
export function sweeps({ whole, clock }: Filmed): Motion[] {
  if (clock) return [];
  return [...whole.querySelectorAll(".control[data-name]")].flatMap((row) => {
    const name = row.getAttribute("data-name") ?? "",
      find = () =>
        whole.querySelector<HTMLInputElement>(
          `[data-name="${CSS.escape(name)}"] input[type=range]`,
        ),
      bar = find();
    if (!bar || bar.disabled || !row.getClientRects().length) return [];
    const { value, min, max } = bar,
      span = Number(max) - Number(min);
    // A page may replace its slider during the motion.
    const put = (to: string, ...events: string[]) => {
      const slider = find();
      if (!slider) return;
      slider.value = to;
      for (const event of events) slider.dispatchEvent(new Event(event));
    };
    return [
      {
        title: `${row.querySelector(".symbol")?.textContent ?? name} from end to end and back`,
        pose: (share) => put(String(Number(min) + span * thereAndBack(share)), "input"),
        end: () => put(value, "input", "change"),
      },
    ];
  });
}

// Return a position in 0..1 of a motion there and back, slow at both ends.
const thereAndBack = (share: number) => (1 - Math.cos(2 * Math.PI * share)) / 2;
