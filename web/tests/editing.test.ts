import { signal } from "@preact/signals-core";
import { beforeEach, expect, test } from "vitest";
import type { CellKind, DocumentCell } from "../src/document/cell";
import type { CellList } from "../src/document/cells";
import { NotebookEditing } from "../src/document/editing";

/** The parts of a cell that editing knows, without an element. */
function cell(source: string, kind: CellKind = "code"): DocumentCell {
  const made = {
    source,
    kind: signal(kind),
    root: {},
    select: () => {
      list.current = made as unknown as DocumentCell;
    },
    edit: () => written.push(source),
    become: (now: CellKind) => {
      made.kind.value = now;
    },
  };
  return made as unknown as DocumentCell;
}

let list: { cells: { value: readonly DocumentCell[]; peek(): readonly DocumentCell[] } } & {
  current: DocumentCell | null;
} & Record<string, unknown>;
let editing: NotebookEditing;
let offered: { message: string; undo: () => void }[];
let written: string[];
let ran: string[];

beforeEach(() => {
  offered = [];
  written = [];
  ran = [];
  const cells = signal<readonly DocumentCell[]>([]);
  list = {
    cells,
    current: null,
    set: (now: readonly DocumentCell[]) => {
      cells.value = now;
    },
    change: () => undefined,
    advance: (from: DocumentCell) => cells.value[cells.value.indexOf(from) + 1],
    actions: { run: (each: DocumentCell) => ran.push(each.source), openInEditor: null },
  };
  editing = new NotebookEditing(
    list as unknown as CellList,
    (kind, source) => cell(source, kind),
    (_, text) => text,
    (message, undo) => offered.push({ message, undo }),
  );
  cells.value = ["one", "two", "three"].map((source) => cell(source));
  list.current = cells.value[0]!;
});

const sources = (): string[] => list.cells.value.map(({ source }) => source);
let time = 0;
function press(...keys: (string | Partial<KeyboardEvent>)[]): void {
  for (const each of keys) {
    time += 100;
    const event = {
      ...(typeof each === "string" ? { key: each } : each),
      target: list.current!.root,
      timeStamp: time,
      preventDefault: () => undefined,
      stopPropagation: () => undefined,
    };
    editing.onKey(list.current!, event as unknown as KeyboardEvent);
  }
}

test("a and b add a cell, and choose it", () => {
  press("b");
  expect(sources()).toEqual(["one", "", "two", "three"]);
  expect(list.cells.value.indexOf(list.current!)).toBe(1);
  press("j", "a");
  expect(sources()).toEqual(["one", "", "", "two", "three"]);
});

test("d twice deletes, z takes back, and so does what is offered", () => {
  press("j", "d");
  expect(sources()).toHaveLength(3);
  press("d");
  expect(sources()).toEqual(["one", "three"]);
  expect(offered[0]!.message).toBe("Cell 2 deleted");
  press("z");
  expect(sources()).toEqual(["one", "two", "three"]);
  expect(list.current!.source).toBe("two");
  press("Z");
  expect(sources()).toEqual(["one", "three"]);
  offered[0]!.undo();
  expect(sources()).toEqual(["one", "two", "three"]);
  time += 5000;
  press("d");
  time += 5000;
  press("d");
  expect(sources()).toHaveLength(3);
});

test("cells move, are cut, copied and pasted, and change their kind", () => {
  press({ key: "ArrowDown", altKey: true });
  expect(sources()).toEqual(["two", "one", "three"]);
  expect(editing.said.value).toBe("Moved to place 2 of 3");
  press({ key: "ArrowUp", ctrlKey: true, shiftKey: true }, { key: "ArrowUp", altKey: true });
  expect(sources()).toEqual(["one", "two", "three"]);
  press("x", "v");
  expect(sources()).toEqual(["two", "one", "three"]);
  press("m");
  expect(list.current!.kind.value).toBe("text");
  press("z");
  expect(list.current!.kind.value).toBe("code");
});

test("what is offered puts the cell back, whatever was done since", () => {
  press("d", "d", "b");
  expect(sources()).toEqual(["two", "", "three"]);
  offered[0]!.undo();
  expect(sources()).toEqual(["one", "two", "", "three"]);
});

test("the last cell can be deleted, and undone", () => {
  press("d", "d", "d", "d");
  expect(sources()).toEqual(["three"]);
  press("d", "d");
  expect(sources()).toEqual([]);
  offered.at(-1)!.undo();
  offered.at(-1)!.undo();
  expect(sources()).toEqual(["three"]);
});

test("keys with Enter run, and go on to the next cell or to a new one", () => {
  const [one, , three] = list.cells.value;
  const run = (on: DocumentCell, keys: Partial<KeyboardEvent>): void =>
    editing.onRunKey(on, { key: "Enter", ...keys } as KeyboardEvent);
  run(one!, { ctrlKey: true });
  expect(list.current).toBe(one);
  run(one!, { shiftKey: true });
  expect(list.current!.source).toBe("two");
  run(three!, { shiftKey: true });
  expect(sources()).toEqual(["one", "two", "three", ""]);
  run(one!, { altKey: true });
  expect(sources()).toEqual(["one", "", "two", "three", ""]);
  expect(ran).toEqual(["one", "one", "three", "one"]);
  expect(written).toEqual(["", ""]);
});
