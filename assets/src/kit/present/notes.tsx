// Speaker's window: notes, time, and the audience's view. The window of the figure controls it; the
// figure needs only its content.
import { render } from "preact";
import { asset } from "../address.ts";

export interface NotesContent {
  title: string;
  caption: string;
  notes: string[];
  shown: [name: string, value: string][];
}

const OWN = "dml-notes"; // storage key for the browser's own notes, by page
const two = (n: number) => String(n).padStart(2, "0");

export class Notes {
  private readonly content: () => NotesContent;
  private window: Window | null = null;
  private began = Date.now();

  constructor(content: () => NotesContent) {
    this.content = content;
  }

  // Open the window, or focus the open one; return true if there is a window.
  open(title: string) {
    if (this.window && !this.window.closed) {
      this.window.focus();
      return true;
    }
    this.window = window.open("", "dml-lab-notes", "popup,width=760,height=820");
    if (!this.window) return false;
    const { document: page } = this.window;
    page.title = `Notes: ${title}`;
    page.documentElement.lang = "en";
    page.body.replaceChildren();
    page.body.className = "";
    render(<link rel="stylesheet" href={asset("kit/present/notes.css")} />, page.head);
    this.show();
    return true;
  }

  // Render the current content and time.
  show() {
    if (!this.window || this.window.closed) return;
    const { title, caption, notes, shown } = this.content(),
      seconds = Math.floor((Date.now() - this.began) / 1000),
      now = new Date(),
      key = `${OWN}:${location.pathname}`;
    render(
      <>
        <header>
          <output aria-label="time running">{`${Math.floor(seconds / 60)}:${two(seconds % 60)}`}</output>
          <button onClick={() => this.restartClock()}>From 0:00</button>
          <small>{`${two(now.getHours())}:${two(now.getMinutes())}`}</small>
        </header>
        <h1>{title}</h1>
        <p class="caption">{caption}</p>
        <ul>
          {notes.map((note) => (
            <li>{note}</li>
          ))}
        </ul>
        <textarea
          aria-label="your own notes"
          placeholder="Your own notes"
          defaultValue={localStorage.getItem(key) ?? ""}
          onInput={(event) => localStorage.setItem(key, event.currentTarget.value)}
        />
        <h2>What is shown</h2>
        <dl>
          {shown.map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
        </dl>
      </>,
      this.window.document.body,
    );
  }

  private restartClock() {
    this.began = Date.now();
    this.show();
  }

  close() {
    this.window?.close();
    this.window = null;
  }
}
