// Dialog for recordings: subject, duration, progress, and cancellation.
import { asset } from "../address.ts";
import type { Filmed, Motion } from "../types.ts";
import type { Kind } from "./film.ts";
import { el, save, setText, styled } from "../dom.ts";
import { kinds } from "./film.ts";
import { Recorder } from "./recorder.ts";

const SECONDS = { least: 1, most: 30, usual: 6 };
const TITLES = { mp4: "MP4", webm: "WebM", zip: "PNG images in a ZIP" };

// Return motions of sliders from end to end and back, for sliders that act immediately.
function sweeps(app: Filmed): Motion[] {
  if (app.playing !== undefined) return [];
  return [...app.whole.querySelectorAll(".control[data-name]")].flatMap((row) => {
    const name = row.getAttribute("data-name") ?? "",
      find = () =>
        app.whole.querySelector(
          `[data-name="${CSS.escape(name)}"] input[type=range]`,
        ) as HTMLInputElement | null,
      bar = find();
    if (!bar || bar.disabled || !row.getClientRects().length) return [];
    const before = bar.value,
      { min, max } = bar;
    const put = (value: string, event: string) => {
      const now = find();
      if (!now) return;
      now.value = value;
      now.dispatchEvent(new Event("input"));
      if (event !== "input") now.dispatchEvent(new Event(event));
    };
    return [
      {
        title: `${row.querySelector(".symbol")?.textContent ?? name} from end to end and back`,
        pose: (t: number) =>
          put(String(Number(min) + (Number(max) - Number(min)) * thereAndBack(t)), "input"),
        end: () => put(before, "change"),
      },
    ];
  });
}

// Return the position of a motion there and back, slow at both ends.
const thereAndBack = (t: number) => (1 - Math.cos(2 * Math.PI * t)) / 2;

export async function record(app: Filmed) {
  const root = app.whole.getRootNode() as ShadowRoot,
    sheet = asset("kit/record/record.css");
  if (!root.querySelector(`link[href="${sheet}"]`)) await styled(root, sheet);
  const loops = [...(app.motions ?? []), ...sweeps(app)],
    written = await kinds(),
    films = written.filter((name) => name !== "zip");
  const option = (text: string, value: string | number) => el("option", { value }, text);
  const what = el(
      "select",
      { "aria-label": "what to record" },
      ...loops.map((motion, i) => option(`Loop: ${motion.title}`, i)),
      ...(films.length ? [option("Current motion", -1)] : []),
    ),
    kind = el(
      "select",
      { "aria-label": "file type" },
      ...written.map((name) => option(TITLES[name], name)),
    ),
    long = el("input", {
      type: "number",
      "aria-label": "seconds",
      min: SECONDS.least,
      max: SECONDS.most,
      value: SECONDS.usual,
    }),
    bar = el("progress", {
      max: "1",
      value: 0,
      hidden: true,
      "aria-label": "progress of the film",
    }),
    word = el("output", {}),
    start = el("button", { class: "start" }, "Record"),
    shut = el("button", {}, "Close"),
    dialog = el(
      "dialog",
      { class: "recording", "aria-label": "Record a film" },
      el("h4", {}, "Film for slides"),
      el("label", {}, "of", what),
      el("label", {}, "seconds", long),
      el("label", {}, "as", kind),
      bar,
      word,
      el("div", { class: "pills" }, start, shut),
    );
  // PNG sequences have no timing, so only loops are offered.
  const offered = () => {
    for (const each of kind.options)
      each.disabled = each.value === "zip" && !loops[Number(what.value)];
    if (kind.selectedOptions[0]?.disabled) kind.value = films[0];
  };
  what.addEventListener("change", offered);
  offered();
  let recorder: Recorder | null = null;
  shut.addEventListener("click", () => (recorder ? recorder.cancel() : dialog.close()));
  dialog.addEventListener("close", () => {
    recorder?.cancel();
    dialog.remove();
  });
  start.addEventListener("click", async () => {
    const seconds = Math.min(
        Math.max(Number(long.value) || SECONDS.usual, SECONDS.least),
        SECONDS.most,
      ),
      motion = loops[Number(what.value)],
      type = kind.value as Kind;
    const tell = (share: number, text: string) => {
      bar.value = share;
      setText(word, text);
    };
    recorder = new Recorder(app);
    start.disabled = true;
    bar.hidden = false;
    setText(shut, "Cancel");
    try {
      const film = motion
        ? await recorder.loop(motion, seconds, type, tell)
        : await recorder.live(seconds, type, tell);
      setText(
        word,
        film ? `${(film.size / 1e6).toFixed(1)} MB, saved to your downloads` : "Cancelled.",
      );
      save(`${location.pathname.split("/").pop()}.${type}`, film);
    } catch (error) {
      setText(word, `The browser could not save the film: ${(error as Error).message}`);
    }
    recorder = null;
    start.disabled = false;
    bar.hidden = true;
    setText(shut, "Close");
  });
  if (!films.length) {
    setText(word, "To record MP4 or WebM, open this page over HTTPS or on localhost.");
    start.disabled = !loops.length;
  }
  app.whole.append(dialog);
  dialog.showModal();
}
