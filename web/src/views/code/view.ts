/** Machine code: TensorIR, the loops it is lowered to, and their WAT, line by line; and how fast. */

import { element } from "../../dom";
import { highlightedLines } from "../../highlight";
import { Stopped } from "../../python/client";
import type { MachineCode, PassLine } from "../../python/protocol";
import "./code.css";
import { copyText, emptyNote, viewPanel } from "../parts";
import type { View, ViewContext } from "../view";
import { type Lines, Links, type LitLines, type Pane, ranges } from "./links";
import { CodeListing, type ListedLine } from "./listing";
import { PassList } from "./passes";
import { peakOf, Roofline, sentence } from "./roofline";
import { watLine } from "./wat";

const PANES: Pane[] = ["tensorir", "lowered", "wat"];
const COLOURS = 6;
const LOOPS = "Loops";
const HINT = "Point at a line, or go to it with the arrow keys, to see what becomes of it.";
const DARK: LitLines = { tensorir: new Set(), lowered: new Set(), wat: new Set() };

export function codeView(context: ViewContext): View {
  const { session, during, isBusy, toast } = context;
  const panel = viewPanel("code", "Machine code");

  const programs = element("select", { id: "code-program" });
  const functions = element("select", { id: "code-function" });
  const fused = element("input", {
    id: "code-fused",
    type: "checkbox",
    "data-testid": "code-fused",
  });
  const functionField = field("Function", functions);
  const fusedField = element(
    "label",
    { class: "switch", for: fused.id },
    fused,
    element("span", {}),
  );
  const head = element(
    "div",
    { class: "code-head" },
    field("Module", programs),
    functionField,
    fusedField,
  );
  const facts = element("ul", { class: "code-facts", "data-testid": "code-facts" });
  const note = element("p", { class: "code-note", role: "status", hidden: true });
  const passes = new PassList((index) => void showPass(index));
  const caption = element("p", {
    class: "code-caption",
    "aria-live": "polite",
    "data-testid": "code-caption",
  });
  const python = (text: string): Node => highlightedLines(text)[0]!;
  const listing = (pane: Pane, label: string, highlight: (text: string) => Node): CodeListing =>
    new CodeListing({
      id: `code-${pane}`,
      label,
      highlight,
      onChoose: (line) => choose(pane, line),
      onPoint: (line) => light(line === null ? null : [pane, line]),
    });
  const listings: Record<Pane, CodeListing> = {
    tensorir: listing("tensorir", "TensorIR", python),
    lowered: listing("lowered", "Loops after lowering", python),
    wat: listing("wat", "WebAssembly text", watLine),
  };
  const loweredTitle = element("h2", {}, LOOPS);
  const copy = element("button", { class: "button quiet small", type: "button" }, "Copy");
  const panes = element(
    "div",
    { class: "code-panes" },
    pane("tensorir", element("h2", {}, "TensorIR"), listings.tensorir),
    pane("lowered", loweredTitle, listings.lowered),
    pane("wat", element("h2", {}, "WebAssembly"), listings.wat, copy),
  );

  const roofline = new Roofline();
  const measure = element(
    "button",
    { class: "button", type: "button", "data-testid": "code-measure" },
    "Measure",
  );
  const outcome = element("p", { class: "roofline-outcome", "aria-live": "polite" });
  const rooflineBox = element(
    "section",
    {
      class: "card roofline-card",
      "data-testid": "roofline",
      "aria-label": "Speed against the machine’s peak",
    },
    element("header", { class: "card-head" }, outcome, measure),
    roofline.root,
  );

  const content = element(
    "div",
    { class: "code-view" },
    head,
    facts,
    note,
    passes.root,
    caption,
    panes,
    rooflineBox,
  );
  const nothing = emptyNote(
    "No machine code yet",
    "Run a program that defines a module. Here is what becomes of it: the loops after each pass, and their WebAssembly.",
  );
  panel.append(nothing);

  let code: MachineCode | null = null;
  let links: Links | null = null;
  let chosen: [Pane, number] | null = null;
  /** The numbers of the loops' lines, where removed lines stand between them. */
  let numbers: (number | null)[] | null = null;
  /** What the caption says while no line is lit. */
  let resting = HINT;
  /** Another program or another run has to be compiled when the view is next in sight. */
  let stale = false;
  let wantsFused: boolean | null = null;
  let request = 0;
  let asking = new AbortController();
  let measured = 0;
  /** The text of loops after a pass, asked for once. */
  let afterPass = new Map<number, Promise<{ lines: PassLine[] }>>();

  async function load(functionName: string | null): Promise<void> {
    const mine = ++request;
    asking.abort();
    asking = new AbortController();
    stale = false;
    panel.setAttribute("aria-busy", "true");
    try {
      const answer = await session.look(
        asking.signal,
        "code_view.code",
        programs.value,
        functionName,
        wantsFused,
      );
      if (mine === request) show(answer);
    } catch (error) {
      if (mine !== request || error instanceof Stopped) return;
      code = null;
      panel.replaceChildren(emptyNote("The machine code cannot be shown", message(error)));
    } finally {
      if (mine === request) panel.removeAttribute("aria-busy");
    }
  }

  function show(answer: MachineCode): void {
    code = answer;
    chosen = null;
    measured += 1;
    afterPass = new Map();
    resting = HINT;
    loweredTitle.textContent = LOOPS;
    functions.replaceChildren(
      ...answer.functions.map((name) => element("option", { value: name }, name)),
    );
    functions.value = answer.function;
    functionField.hidden = answer.functions.length < 2;
    fused.checked = answer.fused.on;
    fused.disabled = !answer.fused.available;
    const { used } = answer.fused;
    fused.nextElementSibling!.textContent = `Fused multiply-add${answer.size ? `, ${used || "none"} used` : ""}`;
    fusedField.title = answer.fused.available
      ? "One rounding instead of two: faster, and the last bit of results may differ"
      : "This browser has no relaxed SIMD instructions";
    facts.replaceChildren(...describe(answer).map((parts) => element("li", {}, ...parts)));
    const { error, notes } = answer;
    note.hidden = !error && !notes.length;
    note.classList.toggle("is-error", error !== null);
    note.textContent = [error ? `No machine code: ${error.message}` : "", ...notes]
      .join(" ")
      .trim();
    panel.replaceChildren(content);
    passes.show(answer.passes ?? []);
    fill(null, true);
    outcome.textContent = error
      ? "Nothing to measure."
      : `Measure ${answer.function} to see how close it comes to what this tab can do.`;
    roofline.root.hidden = true;
    delete rooflineBox.dataset.gflops;
    delete rooflineBox.dataset.peak;
    if (error?.line) listings.tensorir.light(new Set([error.line]), true);
    update();
  }

  /** Show the texts, with the loops as they are in the end or after a pass. */
  function fill(after: PassLine[] | null, whole = false): void {
    if (!code) return;
    const colours = coloursOf(code);
    links = new Links(code, after?.map(({ origins }) => origins) ?? null);
    const coloured = (
      which: Pane,
      lines: { text: string; kind?: ListedLine["kind"] }[],
    ): ListedLine[] =>
      lines.map((line, index) => ({
        ...line,
        colour: colours.get(links!.origin(which, index + 1)),
      }));
    const plain = (lines: string[] | undefined): { text: string }[] =>
      (lines ?? []).map((text) => ({ text }));
    let last = 0;
    numbers = after?.map(({ kind }) => (kind === "removed" ? null : ++last)) ?? null;
    if (after) {
      const change = after.findIndex(({ kind }) => kind !== "same");
      const lines = coloured("lowered", after).map((line, index) => ({
        ...line,
        number: numbers![index]!,
      }));
      listings.lowered.show(lines, Math.max(1, change - 2));
    } else {
      listings.lowered.show(coloured("lowered", plain(code.lowered?.lines)));
    }
    if (whole) {
      listings.tensorir.show(coloured("tensorir", plain(code.tensorir.lines)));
      listings.wat.show(coloured("wat", plain(code.wat?.lines)), firstInstruction(code));
    }
    if (whole || chosen?.[0] === "lowered") chosen = null;
    light(null);
  }

  async function showPass(index: number | null): Promise<void> {
    const now = code;
    if (!now) return;
    if (index === null) {
      loweredTitle.textContent = LOOPS;
      resting = HINT;
      fill(null);
      return;
    }
    const asked =
      afterPass.get(index) ??
      session.look(null, "code_view.after_pass", programs.value, now.function, index);
    afterPass.set(index, asked);
    try {
      const { lines } = await asked;
      if (code !== now || passes.selected !== index) return;
      const changes = lines.filter(({ kind }) => kind !== "same").length;
      loweredTitle.textContent = `Loops after ${now.passes![index]!.name}`;
      resting = changes ? summary(lines) : "This pass leaves the loops as they are.";
      fill(lines);
    } catch (error) {
      afterPass.delete(index);
      if (code === now && !(error instanceof Stopped)) caption.textContent = message(error);
    }
  }

  function choose(which: Pane, line: number | null): void {
    for (const other of PANES) if (other !== which) listings[other].clear();
    chosen = line === null ? null : [which, line];
    light(chosen);
  }

  /** Light up what belongs to a line; without one, what belongs to the chosen line. */
  function light(pointed: [Pane, number] | null): void {
    const source = pointed ?? chosen;
    const lit = source && links ? links.from(...source) : DARK;
    for (const which of PANES)
      listings[which].light(lit[which], pointed !== null && pointed[0] !== which);
    if (source)
      caption.textContent = tell(source, lit, (line) => (numbers ? numbers[line - 1]! : line));
    else caption.textContent = resting;
  }

  async function runMeasurement(): Promise<void> {
    const now = code;
    if (!now) return;
    const mine = ++measured;
    const name = now.function;
    outcome.textContent = `Measuring ${name}, and what this tab can do at best …`;
    try {
      const result = await session.call("code_measure.measure", programs.value, name, wantsFused);
      if (mine !== measured) return;
      outcome.textContent = sentence(name, result);
      rooflineBox.dataset.gflops = String(result.rate / 1e9);
      rooflineBox.dataset.peak = String(peakOf(result) / 1e9);
      roofline.root.hidden = false;
      roofline.show(name, result);
      rooflineBox.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (mine === measured)
        outcome.textContent =
          error instanceof Stopped ? "Stopped." : `It cannot be measured: ${message(error)}`;
    }
  }

  function update(): void {
    measure.disabled = isBusy() || !code?.wat;
  }

  programs.addEventListener("change", () => void load(null));
  functions.addEventListener("change", () => void load(functions.value));
  fused.addEventListener("change", () => {
    wantsFused = fused.checked;
    void load(functions.value);
  });
  measure.addEventListener("click", () => {
    if (code) void during(`Measuring ${code.function}`, () => void session.stop(), runMeasurement);
  });
  copy.addEventListener("click", () => {
    if (!code?.wat) return;
    void copyText(code.wat.lines.join("\n")).then((done) =>
      toast(done ? "Copied" : "The browser does not allow copying here"),
    );
  });

  return {
    id: "code",
    title: "Machine code",
    panel,
    onResult({ programs: found, ok }) {
      if (!found.length) {
        if (ok) {
          code = null;
          request += 1;
          panel.replaceChildren(nothing);
        }
        return;
      }
      programs.replaceChildren(
        ...found.map(({ id, title }) => element("option", { value: id }, title)),
      );
      programs.value = found.at(-1)!.id;
      programs.parentElement!.hidden = found.length < 2;
      stale = true;
      if (!panel.hidden) void load(null);
    },
    onActivity: update,
    onShow() {
      if (stale) void load(null);
    },
  };
}

function pane(
  which: Pane,
  title: HTMLElement,
  listing: CodeListing,
  ...tools: HTMLElement[]
): HTMLElement {
  return element(
    "section",
    { class: `code-pane code-pane-${which}` },
    element("header", {}, title, ...tools),
    listing.root,
  );
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element("label", { class: "field", for: control.id }, label, control);
}

/** Size and make of the code, as figures with what they count. */
function describe({ size }: MachineCode): (Node | string)[][] {
  if (!size) return [];
  const figure = (value: number | string): HTMLElement =>
    element("strong", {}, typeof value === "number" ? value.toLocaleString("en") : value);
  const { bytes, instructions, simd, loop } = size;
  const found: (Node | string)[][] = [
    [figure(bytes), " bytes"],
    [figure(instructions), " instructions, ", figure(simd), " SIMD"],
  ];
  if (loop) {
    const name = loop.name ? element("code", {}, loop.name) : "";
    found.push([
      "innermost loop ",
      name,
      " ",
      figure(loop.instructions),
      " instructions, ",
      figure(loop.simd),
      " SIMD",
    ]);
  }
  return found;
}

/** A colour's number for each line of TensorIR that has code of its own. */
function coloursOf({ tensorir }: MachineCode): Map<number | null, number> {
  const colours = new Map<number | null, number>();
  for (const [index, lines] of tensorir.standsFor.entries()) {
    if (lines.length === 1 && lines[0] === index + 1)
      colours.set(index + 1, colours.size % COLOURS);
  }
  return colours;
}

/** The line of WAT at which the function's code begins to come from somewhere. */
function firstInstruction({ wat }: MachineCode): number {
  const first = wat?.origins.findIndex((lines) => lines.length > 0) ?? -1;
  return Math.max(1, first);
}

function summary(lines: PassLine[]): string {
  const count = (wanted: string): number => lines.filter(({ kind }) => kind === wanted).length;
  return `This pass writes ${numbered(count("added"), "line")} and removes ${numbered(count("removed"), "line")}.`;
}

const NAMES: Record<Pane, string> = {
  tensorir: "TensorIR",
  lowered: "the loops",
  wat: "WebAssembly",
};

/** What is lit, in words. */
function tell(
  [pane, line]: [Pane, number],
  lit: LitLines,
  numberOf: (line: number) => number | null,
): string {
  const number = pane === "lowered" ? numberOf(line) : line;
  const start =
    number === null
      ? `A line that was removed from ${NAMES[pane]}`
      : `Line ${number} of ${NAMES[pane]}`;
  const loops = [...lit.lowered].map(numberOf).filter((each) => each !== null);
  const shown: LitLines = { ...lit, lowered: new Set(loops) };
  const others = PANES.filter((other) => other !== pane && shown[other].size);
  if (!others.length) return `${start} stands for no instruction of its own.`;
  return `${start}: ${others.map((other) => place(other, shown[other])).join(", ")}.`;
}

function place(pane: Pane, lines: Lines): string {
  if (pane === "wat" && lines.size > 1) return `${lines.size.toLocaleString("en")} instructions`;
  const found = ranges(lines);
  const shown = found
    .slice(0, 3)
    .map(([first, last]) => (first === last ? String(first) : `${first}–${last}`));
  const rest = found.length > 3 ? " …" : "";
  return `${lines.size === 1 ? "line" : "lines"} ${shown.join(", ")}${rest} of ${NAMES[pane]}`;
}

function numbered(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
