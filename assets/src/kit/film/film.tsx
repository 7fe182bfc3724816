// Dialog for recordings: subject, duration, progress, and cancellation.
import type { Motion } from "../types.ts";
import type { Carded } from "./card.ts";
import type { Kind } from "./formats.ts";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asset } from "../address.ts";
import { el, save, styled } from "../dom.ts";
import { kinds } from "./formats.ts";
import { recordLive, recordLoop } from "./recorder.ts";
import { sweeps } from "./sweeps.ts";

const SECONDS = { least: 1, most: 30, usual: 6 };
const TITLES = { mp4: "MP4", webm: "WebM", zip: "PNG images in a ZIP" };
const NO_VIDEO = "To record MP4 or WebM, open this page over HTTPS or on localhost.";

// Open the dialog on a page.
export async function openFilmDialog(app: Carded) {
  const root = app.whole.getRootNode() as ShadowRoot,
    sheet = asset("kit/film/film.css");
  if (!root.querySelector(`link[href="${sheet}"]`)) await styled(root, sheet);
  const loops = [...(app.motions ?? []), ...sweeps(app)],
    formats = await kinds(),
    dialog = el("dialog", { class: "recording", "aria-label": "Record a film" });
  dialog.addEventListener("close", () => {
    render(null, dialog);
    dialog.remove();
  });
  render(<FilmForm {...{ app, loops, formats }} close={() => dialog.close()} />, dialog);
  app.whole.append(dialog);
  dialog.showModal();
}

interface FormProps {
  app: Carded;
  loops: Motion[];
  formats: Kind[];
  close: () => void;
}

function FilmForm({ app, loops, formats, close }: FormProps) {
  const videos = formats.filter((name) => name !== "zip"),
    [subject, setSubject] = useState(loops.length ? 0 : -1), // index of a loop, -1: current motion
    [seconds, setSeconds] = useState(String(SECONDS.usual)),
    [format, setFormat] = useState(formats[0]),
    [card, setCard] = useState(false),
    [share, setShare] = useState(0),
    [message, setMessage] = useState(videos.length ? "" : NO_VIDEO),
    [recording, setRecording] = useState<AbortController | null>(null),
    loop: Motion | undefined = loops[subject],
    // Images have no timing, so that only loops are recorded as images.
    kind = format === "zip" && !loop ? videos[0] : format;
  useEffect(() => () => recording?.abort(), [recording]); // closing the dialog cancels

  const start = async () => {
    const wanted = Number(seconds) || SECONDS.usual,
      controller = new AbortController();
    const report = (done: number, text: string) => {
      setShare(done);
      setMessage(text);
    };
    const what = {
      app,
      kind,
      card,
      report,
      signal: controller.signal,
      seconds: Math.min(Math.max(wanted, SECONDS.least), SECONDS.most),
    };
    setRecording(controller);
    try {
      const film = await (loop ? recordLoop(what, loop) : recordLive(what));
      setMessage(
        film ? `${(film.size / 1e6).toFixed(1)} MB, saved to your downloads` : "Cancelled.",
      );
      save(`${location.pathname.split("/").pop()}.${kind}`, film);
    } catch (error) {
      setMessage(`The browser could not save the film: ${(error as Error).message}`);
    }
    setRecording(null);
    setShare(0);
  };

  return (
    <>
      <h4>Film for slides</h4>
      <label>
        of
        <select
          aria-label="what to record"
          value={subject}
          onChange={(event) => setSubject(Number(event.currentTarget.value))}
        >
          {loops.map((motion, i) => (
            <option value={i}>Loop: {motion.title}</option>
          ))}
          {videos.length > 0 && <option value={-1}>Current motion</option>}
        </select>
      </label>
      <label>
        seconds
        <input
          type="number"
          aria-label="seconds"
          min={SECONDS.least}
          max={SECONDS.most}
          value={seconds}
          onInput={(event) => setSeconds(event.currentTarget.value)}
        />
      </label>
      <label>
        as
        <select
          aria-label="file type"
          value={kind}
          onChange={(event) => setFormat(event.currentTarget.value as Kind)}
        >
          {formats.map((name) => (
            <option value={name} disabled={name === "zip" && !loop}>
              {TITLES[name]}
            </option>
          ))}
        </select>
      </label>
      <label>
        frame
        <select
          aria-label="frame"
          value={card ? "card" : "figure"}
          onChange={(event) => setCard(event.currentTarget.value === "card")}
        >
          <option value="figure">Figure alone</option>
          <option value="card">Share card, 1200 × 630</option>
        </select>
      </label>
      <progress max={1} value={share} hidden={!recording} aria-label="progress of the film" />
      <output>{message}</output>
      <div class="pills">
        <button
          class="start"
          disabled={Boolean(recording) || !(videos.length || loops.length)}
          onClick={start}
        >
          Record
        </button>
        <button onClick={() => (recording ? recording.abort() : close())}>
          {recording ? "Cancel" : "Close"}
        </button>
      </div>
    </>
  );
}
