import assert from "node:assert/strict";
import { test } from "node:test";
import { toChildArray } from "preact";
import type { VNode } from "preact";
import { Menu, Pills, Switches } from "../../../../assets/src/kit/panel/choices.tsx";

type Props = Record<string, any>;
const childrenOf = (node: VNode) =>
  toChildArray((node.props as Props).children).map((child) => (child as VNode).props as Props);

test("a menu lists its offers with their help, and reports the value chosen", () => {
  const chosen: string[] = [],
    offers = { all: "all triplets", hard: { title: "hard", help: "negatives nearer than p" } },
    menu = Menu({ label: "triplets", offers, value: "hard", onChange: (v) => chosen.push(v) });
  const props = menu.props as Props;
  assert.deepEqual([props["aria-label"], props.value], ["triplets", "hard"]);
  assert.deepEqual(
    childrenOf(menu).map(({ value, title, children }) => [value, title, children]),
    [
      ["all", undefined, "all triplets"],
      ["hard", "negatives nearer than p", "hard"],
    ],
  );
  props.onChange({ currentTarget: { value: "all" } });
  assert.deepEqual(chosen, ["all"]);
});

test("one pill is pressed, and a group needs a label", () => {
  const pressed: string[] = [],
    pills = [{ value: "both" }, { value: "pull", text: "pull only", disabled: true }];
  const group = Pills({ label: "forces", pills, value: "both", onChange: (v) => pressed.push(v) }),
    [both, pull] = childrenOf(group);
  assert.deepEqual([both["aria-pressed"], pull["aria-pressed"]], [true, false]);
  assert.deepEqual([both.children, pull.children, pull.disabled], ["both", "pull only", true]);
  pull.onClick();
  assert.deepEqual(pressed, ["pull"]);
  assert.equal((group.props as Props).role, "group");
  assert.equal((Pills({ pills, value: null, onChange() {} }).props as Props).role, undefined);
});

test("switches report the flag that changes", () => {
  const changes: [string, boolean][] = [],
    rows = [
      ["trails", "trails"],
      ["arrows", "force arrows", "Force on each point"],
    ] as const;
  const switches = Switches({
      shown: { trails: true, arrows: false },
      rows,
      onChange: (key, on) => changes.push([key, on]),
    }),
    [trails, arrows] = childrenOf(switches);
  assert.deepEqual([trails.checked, arrows.checked, arrows.title], [true, false, rows[1][2]]);
  arrows.onChange(true);
  assert.deepEqual(changes, [["arrows", true]]);
});
