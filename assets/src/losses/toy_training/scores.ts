// Scores over all samples of the split, computed by Python for a step at rest.
import { signal } from "@preact/signals";
import type { Table } from "./types.ts";

// Parts of the session that loading uses.
interface Source {
  data: { base: string };
  link: { closed: boolean };
}

export class Scores {
  table = signal<Table | null>(null);
  private source: Source;
  private key: string | null = null; // state and step of the table

  constructor(source: Source) {
    this.source = source;
  }

  // Load the table of an address; after a failure the next call tries again.
  async load(key: string) {
    if (this.key === key) return;
    this.key = key;
    const base = new URL(this.source.data.base, location.href),
      found: Table | null = await fetch(new URL(`api/toys/table?${key}`, base))
        .then((r) => (r.ok ? r.json() : null))
        .catch(() => null);
    if (this.source.link.closed || this.key !== key) return;
    if (found) this.table.value = found;
    else this.key = null;
  }
}
