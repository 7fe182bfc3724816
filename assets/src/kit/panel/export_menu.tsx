// Exports of a figure: presentation, film, files that Python makes from its link, the link itself.
import { useState } from "preact/hooks";
import type { Filmed, Presentation } from "../types.ts";
import { FORMATS, exportAddress } from "../export.ts";
import { KEY, enter, film } from "../present/present.ts";

// Buttons for presentation and recording; none if the page has no presentation.
export const PresentButtons = ({
  app,
}: {
  app: Filmed & { data: { present?: Presentation | null } };
}) =>
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
    </>
  ) : null;

// Links to `base`api/`page`/export.*. `query` is called whenever a link is used, so that the file
// shows the current view.
export const ExportLinks = ({
  base,
  page,
  query,
  formats = FORMATS,
}: {
  base: string;
  page: string;
  query(): string;
  formats?: Record<string, string>;
}) => (
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
