// Dialog for recordings: subject, duration, progress, and cancellation.
/** @import { Filmed, Motion } from "../types.js" */
/** @import { Kind } from "./film.js" */
import { el, save, setText, styled } from "../dom.js";
import { kinds } from "./film.js";
import { Recorder } from "./recorder.js";

const SECONDS = { least: 1, most: 30, usual: 6 };
const TITLES = { mp4: "MP4", webm: "WebM", zip: "PNG images in a ZIP" };

// Return motions of sliders from end to end and back, for sliders that act immediately.
/**
 * @param {Filmed} app
 * @returns {Motion[]}
 */
function sweeps(app) {
  if (app.playing !== undefined) return [];
  return [...app.whole.querySelectorAll(".control[data-name]")].flatMap((row) => {
    const name = row.getAttribute("data-name") ?? "",
      find = () =>
        /** @type {HTMLInputElement | null} */ (
          app.whole.querySelector(`[data-name="${CSS.escape(name)}"] input[type=range]`)
        ),
      bar = find();
    if (!bar || bar.disabled || !row.getClientRects().length) return [];
    const before = bar.value,
      { min, max } = bar;
    const put = (/** @type {string} */ value, /** @type {string} */ event) => {
      const now = find();
      if (!now) return;
      now.value = value;
      now.dispatchEvent(new Event("input"));
      if (event !== "input") now.dispatchEvent(new Event(event));
    };
    return [
      {
        title: `${row.querySelector(".symbol")?.textContent ?? name} from end to end and back`,
        pose: (/** @type {number} */ t) =>
          put(String(Number(min) + (Number(max) - Number(min)) * thereAndBack(t)), "input"),
        end: () => put(before, "change"),
      },
    ];
  });
}

// Return the position of a motion there and back, slow at both ends.
const thereAndBack = (/** @type {number} */ t) => (1 - Math.cos(2 * Math.PI * t)) / 2;

/** @param {Filmed} app */
export async function record(app) {
  const root = /** @type {ShadowRoot} */ (app.whole.getRootNode()),
    sheet = new URL("record.css", import.meta.url).href;
  if (!root.querySelector(`link[href="${sheet}"]`)) await styled(root, sheet);
  const loops = [...(app.motions ?? []), ...sweeps(app)],
    written = await kinds(),
    films = written.filter((name) => name !== "zip");
  const option = (/** @type {string} */ text, /** @type {string | number} */ value) =>
    el("option", { value }, text);
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
  /** @type {Recorder | null} */
  let recorder = null;
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
      type = /** @type {Kind} */ (kind.value);
    const tell = (/** @type {number} */ share, /** @type {string} */ text) => {
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
      setText(word, `The browser could not save the film: ${/** @type {Error} */ (error).message}`);
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
