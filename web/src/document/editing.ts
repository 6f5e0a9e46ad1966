/** What can be done with the cells of a notebook as a whole, by keys as in Jupyter or from a menu. */

import { signal } from "@preact/signals-core";
import type { MenuItem } from "../shell/menu";
import type { CellEditing, CellKind, DocumentCell } from "./cell";
import type { CellList } from "./cells";

/** Milliseconds between the two keys of "d d". */
const TWICE = 800;

type Cells = readonly DocumentCell[];

/** Cells as they were, each with what it was. */
interface Step {
  cells: Cells;
  kinds: CellKind[];
  at: number;
}

export class NotebookEditing implements CellEditing {
  /** What was done last, for those who do not see it. */
  readonly said = signal("");
  private undone: Step[] = [];
  private done: Step[] = [];
  private clipboard: { kind: CellKind; source: string } | null = null;
  private pressed = { key: "", at: 0 };

  /** `make` makes a cell, `offerUndo` tells that one was deleted. */
  constructor(
    private readonly list: CellList,
    private readonly make: (kind: CellKind, source: string) => DocumentCell,
    readonly rendered: (cell: DocumentCell, text: string) => string,
    private readonly offerUndo: (message: string, undo: () => void) => void,
  ) {}

  /** Put a new cell in front of the one at `at`. */
  insert(at: number, kind: CellKind, source = ""): DocumentCell {
    return this.put(this.make(kind, source), at);
  }

  /** Put one in, and let the reader write in it at once, where the button for it was pressed. */
  add(at: number, kind: CellKind): void {
    this.insert(at, kind).edit();
  }

  remove(cell: DocumentCell): void {
    const at = this.cells.indexOf(cell);
    if (at < 0) return;
    this.keep();
    const left = this.cells.filter((each) => each !== cell);
    this.show(left, left[Math.min(at, left.length - 1)]);
    // Much may have been done until this is asked.
    this.offerUndo(`Cell ${at + 1} deleted`, () => {
      if (!this.cells.includes(cell)) this.put(cell, at);
    });
  }

  /** Move a cell up (-1) or down (1). */
  move(cell: DocumentCell, by: -1 | 1): void {
    const cells = [...this.cells];
    const from = cells.indexOf(cell);
    const to = from + by;
    if (to < 0 || to >= cells.length) return;
    this.keep();
    cells.splice(to, 0, ...cells.splice(from, 1));
    this.show(cells, cell);
    this.said.value = `Moved to place ${to + 1} of ${cells.length}`;
  }

  become(cell: DocumentCell, kind: CellKind): void {
    if (cell.kind.peek() === kind) return;
    this.keep();
    cell.become(kind);
    this.show(this.cells, cell);
    this.said.value = kind === "code" ? "Code now" : "Text now";
  }

  /** Take back what was done last to cells as a whole; what is written in them stays. */
  undo(): void {
    this.swap(this.done, this.undone, "Undone");
  }

  redo(): void {
    this.swap(this.undone, this.done, "Done again");
  }

  menu(cell: DocumentCell): MenuItem[] {
    const at = this.cells.indexOf(cell);
    const isCode = cell.kind.peek() === "code";
    const { openInEditor, runAbove } = this.list.actions;
    const item = (label: string, testId: string, run: () => void, when = true): MenuItem[] =>
      when ? [{ label, testId, run }] : [];
    return [
      ...item("Add code above", "cell-add-above", () => this.add(at, "code")),
      ...item("Add code below", "cell-add-below", () => this.add(at + 1, "code")),
      ...item("Add text below", "cell-add-text", () => this.add(at + 1, "text")),
      ...item("Move up", "cell-up", () => this.move(cell, -1), at > 0),
      ...item("Move down", "cell-down", () => this.move(cell, 1), at < this.cells.length - 1),
      ...item(isCode ? "Make it text" : "Make it code", "cell-become", () =>
        this.become(cell, isCode ? "text" : "code"),
      ),
      ...item("Run all above", "cell-above", () => runAbove(cell), isCode && at > 0),
      ...item(
        "Open in editor",
        "cell-open",
        () => openInEditor?.(cell),
        isCode && openInEditor !== null,
      ),
      ...item("Delete", "cell-delete", () => this.remove(cell)),
    ];
  }

  /** Shift: run, and go on, to a new cell behind the last; Alt: to a new one below in any case. */
  onRunKey(cell: DocumentCell, { shiftKey, altKey }: KeyboardEvent): void {
    const { list } = this;
    if (cell.kind.peek() === "code") list.actions.run(cell, false);
    if (!shiftKey && !altKey) {
      cell.select();
      return;
    }
    const at = this.cells.indexOf(cell) + 1;
    if (altKey || at === this.cells.length) this.add(at, "code");
    else {
      if (cell.kind.peek() === "text") cell.select();
      list.advance(cell)?.select();
    }
  }

  onKey(cell: DocumentCell, event: KeyboardEvent): void {
    if (event.defaultPrevented) return;
    const { key, target } = event;
    if (key === "Escape" && target !== cell.root && !inMenu(target)) cell.select();
    else if (target !== cell.root || !this.command(cell, event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Do what a key means while a cell is chosen as a whole; whether it means something. */
  private command(cell: DocumentCell, event: KeyboardEvent): boolean {
    const { key, shiftKey, altKey } = event;
    const control = event.ctrlKey || event.metaKey;
    if (key === "ArrowUp" || key === "ArrowDown") {
      const by = key === "ArrowUp" ? -1 : 1;
      if (altKey || (control && shiftKey)) this.move(cell, by);
      else this.choose(this.cells.indexOf(cell) + by);
      return true;
    }
    if (control || altKey) return false;
    const at = this.cells.indexOf(cell);
    const commands: Record<string, () => void> = {
      Enter: () => cell.edit(),
      k: () => this.choose(at - 1),
      j: () => this.choose(at + 1),
      a: () => this.insert(at, "code").select(),
      b: () => this.insert(at + 1, "code").select(),
      m: () => this.become(cell, "text"),
      y: () => this.become(cell, "code"),
      dd: () => this.remove(cell),
      x: () => {
        this.copy(cell);
        this.remove(cell);
      },
      c: () => this.copy(cell),
      v: () => this.paste(at + 1),
      V: () => this.paste(at),
      z: () => this.undo(),
      Z: () => this.redo(),
    };
    const twice = this.pressed.key === key && event.timeStamp - this.pressed.at < TWICE;
    this.pressed = { key: twice ? "" : key, at: event.timeStamp };
    const command = commands[twice ? key + key : key] ?? commands[key];
    command?.();
    return command !== undefined || key === "d";
  }

  private get cells(): Cells {
    return this.list.cells.peek();
  }

  private put(cell: DocumentCell, at: number): DocumentCell {
    this.keep();
    const { cells } = this;
    this.show([...cells.slice(0, at), cell, ...cells.slice(at)], cell);
    return cell;
  }

  private choose(at: number): void {
    this.cells[at]?.select();
  }

  private copy(cell: DocumentCell): void {
    this.clipboard = { kind: cell.kind.peek(), source: cell.source };
    this.said.value = "Copied";
  }

  private paste(at: number): void {
    if (this.clipboard) this.insert(at, this.clipboard.kind, this.clipboard.source).select();
  }

  private get step(): Step {
    const { cells, list } = this;
    const at = list.current ? cells.indexOf(list.current) : 0;
    return { cells, kinds: cells.map(({ kind }) => kind.peek()), at };
  }

  /** What is there now can be come back to. */
  private keep(): void {
    this.done.push(this.step);
    this.undone = [];
  }

  private swap(from: Step[], to: Step[], said: string): void {
    const step = from.pop();
    if (!step) return;
    to.push(this.step);
    for (const [index, cell] of step.cells.entries()) cell.become(step.kinds[index]!);
    this.show(step.cells, step.cells[step.at]);
    this.said.value = said;
  }

  private show(cells: Cells, chosen: DocumentCell | undefined): void {
    this.list.set(cells);
    this.list.change();
    chosen?.select();
  }
}

/** What the keys do, for the page to say. */
export const KEYS: [keys: string, what: string][] = [
  ["Escape, Enter", "choose the cell as a whole; write in it again"],
  ["↑ ↓ (K J)", "choose the cell above, below"],
  ["A, B", "add a cell above, below"],
  ["D D, Z", "delete the cell; undo (Shift Z: redo)"],
  ["Alt ↑ ↓", "move the cell"],
  ["X, C, V", "cut, copy, paste below (Shift V: above)"],
  ["M, Y", "make it text, code"],
  ["Shift Enter", "run, and go on to the next cell"],
  ["Control Enter", "run"],
  ["Alt Enter", "run, and add a cell below"],
];

function inMenu(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("[popover]") !== null;
}
