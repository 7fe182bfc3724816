// Address of a player: the state that Python named, the step shown, and marks of the page.
import type { Query } from "./types.ts";
import { writeAddress } from "../dom.ts";

export class PlayerAddress {
  state: Query | undefined; // query of the state alone, once Python has sent it
  text = ""; // query of the state and the step shown

  // Take over the query of a state at a step.
  remember(query: Query, step: number) {
    this.state = query;
    this.text = new URLSearchParams({ ...query, step: String(step) }).toString();
  }

  // Return true if this is the query that the page itself has written.
  matches(query: string) {
    return query === JSON.stringify(this.state);
  }

  // Write the address of a step; `marks` are further parameters.
  write(step: number, marks: Query = {}) {
    const address = new URLSearchParams(this.state);
    if (step > 0) address.set("step", String(step));
    for (const [name, value] of Object.entries(marks)) address.set(name, value);
    writeAddress(address.toString(), ["hide", "socket"]);
  }
}
