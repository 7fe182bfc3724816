// Undo and redo: states as text, the newest last.

const MOST = 100; // states kept

export class History {
  private done: string[];
  private undone: string[] = [];

  constructor(first: string) {
    this.done = [first];
  }

  /** Forget all states, for a first one of something else. */
  restart(first: string): void {
    this.done = [first];
    this.undone = [];
  }

  get canUndo(): boolean {
    return this.done.length > 1;
  }
  get canRedo(): boolean {
    return this.undone.length > 0;
  }

  /** Add a state, unless it equals the last one. States that were undone are dropped. */
  push(state: string): void {
    if (state === this.done.at(-1)) return;
    this.done.push(state);
    if (this.done.length > MOST) this.done.shift();
    this.undone = [];
  }

  /** Return the state before the last one, if there is one. */
  undo(): string | undefined {
    if (!this.canUndo) return undefined;
    this.undone.push(this.done.pop() as string);
    return this.done.at(-1);
  }

  /** Return the state that was undone last, if there is one. */
  redo(): string | undefined {
    const next = this.undone.pop();
    if (next) this.done.push(next);
    return next;
  }
}
