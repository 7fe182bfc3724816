// Conclusion of a step of the pooling story, and links to its neighbours.
import { asset } from "../../kit/address.ts";

export interface Door {
  address: string;
  text: string;
  title?: string;
  next: boolean;
}

export const StoryView = ({
  verdict,
  doors,
  onLeave,
}: {
  verdict: string;
  doors: (Door & { href: string })[];
  onLeave(door: Door): void; // instead of loading a page
}) => (
  <>
    <link rel="stylesheet" href={asset("pooling/story/story.css")} />
    <p class="conclusion">{verdict}</p>
    <nav aria-label="neighbouring steps">
      {doors.map((door) => (
        <a
          key={door.address}
          class={door.next ? "door next" : "door"}
          data-door={door.address}
          title={door.title ?? ""}
          href={door.href}
          onClick={(event) => {
            if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
              return;
            event.preventDefault();
            onLeave(door);
          }}
        >
          {door.text}
        </a>
      ))}
    </nav>
  </>
);
