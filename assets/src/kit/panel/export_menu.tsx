// Exports of a figure: presentation, film, files that Python makes from its link, the link itself.
import { useState } from "preact/hooks";
import type { Carded } from "../film/card.ts";
import type { FigureFormat } from "../figure/file.ts";
import { FORMATS, exportAddress } from "../export.ts";
import { FIGURE_FORMATS } from "../figure/file.ts";
import { KEY, enter, film, shareCard } from "../present/present.ts";

// Buttons for presentation, film and share card; none if the page has no presentation.
export const PresentButtons = ({ app }: { app: Carded }) =>
  app.data.present ? (
    <>
      <button
        class="present"
        title={`Show the figure in the whole window (${KEY.toUpperCase()})`}
        onClick={() => enter()}
      >
        Present
      </button>
      <button class="film" title="Record a film for slides" onClick={() => film(app)}>
        Film
      </button>
      <ShareCard app={app} />
    </>
  ) : null;

// Button for the share card of a page, also without a presentation. `image` returns what it shows
// where the figures do not lie next to each other on the page.
export const ShareCard = ({ app, image }: { app: Carded; image?(): Promise<Blob> }) => (
  <button
    class="card-image"
    title="Picture of 1200 × 630 pixels with title and formula"
    onClick={() => shareCard(app, image)}
  >
    Share card
  </button>
);

// Buttons that save what a figure shows.
export const FigureButtons = ({ save }: { save(format: FigureFormat): unknown }) =>
  Object.entries(FIGURE_FORMATS).map(([format, text]) => (
    <button key={format} data-format={format} onClick={() => save(format as FigureFormat)}>
      {text}
    </button>
  ));

interface ExportProps {
  base: string;
  page: string;
  query(): string;
  formats?: Record<string, string>;
}

// Links to `base`api/`page`/export.*. `query` is called whenever a link is used, so that the file
// shows the current view.
export const ExportLinks = ({ base, page, query, formats = FORMATS }: ExportProps) => (
  <>
    {Object.entries(formats).map(([format, text]) => {
      const address = () => exportAddress(base, page, format, query());
      const renew = ({ currentTarget }: { currentTarget: HTMLAnchorElement }) => {
        currentTarget.href = address();
      };
      return (
        <a
          key={format}
          class="button"
          download=""
          data-format={format}
          href={address()}
          onPointerDown={renew}
          onFocus={renew}
          onClick={renew}
        >
          {text}
        </a>
      );
    })}
  </>
);

// Button that copies the address of the page.
export function CopyLink() {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(location.href);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return <button onClick={copy}>{copied ? "copied" : "copy link"}</button>;
}
