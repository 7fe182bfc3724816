// Tags for all images shown, and named views of this page; both are stored with the run.
import type { MapView } from "./explore.ts";
import { div, el, setText } from "../../kit/dom.ts";
import { marked, packed } from "./cloud.ts";

export class Keeping {
  map: MapView;
  tag: HTMLFormElement;
  view: HTMLFormElement;
  views: HTMLUListElement;
  why: HTMLElement;
  root: HTMLDetailsElement;
  constructor(map: MapView) {
    this.map = map;
    this.tag = this.named("tag for the images shown", "Tag", (tag) =>
      map.keep({ tag, bits: packed(marked(map.cloud.count, map.wall.rows)), on: true }),
    );
    this.view = this.named("name of this view", "Keep", (view) => map.keep({ view }));
    this.views = el("ul", { class: "views" });
    this.why = el("small", {});
    this.root = el(
      "details",
      { class: "keeping" },
      el("summary", { class: "button" }, "Tags and views"),
      div("sheet", this.tag, this.view, this.views, this.why),
    );
  }

  named(placeholder: string, label: string, act: (name: string) => void) {
    const input = el("input", { placeholder, "aria-label": placeholder, maxlength: 40 }),
      form = el("form", {}, input, el("button", {}, label));
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      if (input.value.trim()) act(input.value);
      input.value = "";
    });
    return form;
  }

  show() {
    const { data } = this.map;
    for (const form of [this.tag, this.view])
      for (const control of form.querySelectorAll("input, button"))
        control.toggleAttribute("disabled", Boolean(data.closed));
    setText(
      this.why,
      data.closed || "Tags and views are stored with the run. A view is also a link.",
    );
    this.views.replaceChildren(
      ...data.views.map(({ name, query }) => {
        const link = el(
          "a",
          { href: `${location.pathname}?${new URLSearchParams({ run: data.run })}&${query}` },
          el("bdi", {}, name),
        );
        link.addEventListener("click", (e) => {
          // a plain link would reload the whole app
          if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
          e.preventDefault();
          this.map.keep({ open: name });
        });
        return el(
          "li",
          {},
          link,
          el(
            "button",
            {
              "aria-label": `remove the view ${name}`,
              title: "remove",
              disabled: Boolean(data.closed),
              onclick: () => this.map.keep({ drop: name }),
            },
            "×",
          ),
        );
      }),
    );
  }
}
