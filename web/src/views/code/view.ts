/** Machine code: TensorIR, the loops it is lowered to, and their WAT, line by line; and how fast. */

import { batch, computed, signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import type { MachineCode, PassLine } from "../../python/wire";
import { counted, whole } from "../format";
import "./code.css";
import { button, checkbox, copyAndTell, python } from "../kit";
import { ProgramReport } from "../program_report";
import { Cache, Resource } from "../resource";
import type { View, ViewContext } from "../view";
import { type Lines, Links, type LitLines, type Pane, ranges } from "./links";
import { codeListing, type Listed, type ListedLine } from "./listing";
import { Measurement } from "./measurement";
import { passList } from "./passes";
import { watLine } from "./wat";

const PANES: Pane[] = ["tensorir", "lowered", "wat"];
const COLOURS = 6;
const HINT = "Point at a line, or move to it with the arrow keys, to see what it compiles to.";
const DARK: LitLines = { tensorir: new Set(), lowered: new Set(), wat: new Set() };

/** A line of one of the texts. */
type Line = [Pane, number];

/** The loops after a pass; removed lines between them have no number. */
interface AfterPass {
  name: string;
  lines: (PassLine & { number: number | null })[];
}

export function codeView(context: ViewContext): View {
  const { session, toast } = context;
  const wantsFused = signal<boolean | null>(null);
  const reported = new ProgramReport<MachineCode>("code", "Machine code", context, {
    what: "Compiling",
    explain: (signal, program, name) =>
      session.look(signal, "code_view.code", program, name, wantsFused.value),
    take: () => {
      afterPass.clear();
      pass.value = acted.value = chosen.value = pointed.value = null;
      measurement.reset();
    },
  });
  const { report: code, asked } = reported;
  /** The pass whose loops are shown; null for those after all passes. */
  const pass = signal<number | null>(null);
  const passed = new Resource<AfterPass>();
  const after = computed(() => (pass.value === null ? null : passed.value));
  const chosen = signal<Line | null>(null);
  const pointed = signal<Line | null>(null);
  /** Where the reader did something last: there, nothing is to move. */
  const acted = signal<Line | null>(null);
  /** Of the code shown, by pass. */
  const afterPass = new Cache<AfterPass>();

  const finalLinks = computed(() => code.value && new Links(code.value));
  const links = computed(() => {
    const origins = after.value?.lines.map((line) => line.origins);
    return code.value && origins ? new Links(code.value, origins) : finalLinks.value;
  });
  const source = computed(() => pointed.value ?? chosen.value);
  const lit = computed((): LitLines => {
    if (source.value && links.value) return links.value.from(...source.value);
    const line = code.value?.error?.line;
    return line ? { ...DARK, tensorir: new Set([line]) } : DARK;
  });
  const act = (what: typeof chosen, pane: Pane, line: number | null): void =>
    batch(() => {
      acted.value = what.value = line === null ? null : [pane, line];
    });
  const listed = (pane: Pane): Listed => {
    const now = code.value;
    if (!now) return { lines: [], start: 1 };
    const colours = coloursOf(now);
    const text = (lines: ListedLine[], from: Links | null, start = 1): Listed => ({
      lines: lines.map((line, index) => ({
        ...line,
        colour: colours.get(from?.origin(pane, index + 1) ?? null),
      })),
      start,
    });
    if (pane === "lowered" && after.value) {
      const change = after.value.lines.findIndex(({ kind }) => kind !== "same");
      return text(after.value.lines, links.value, Math.max(1, change - 2));
    }
    const plain = (now[pane]?.lines ?? []).map((line) => ({ text: line }));
    return text(plain, finalLinks.value, pane === "wat" ? firstInstruction(now) : 1);
  };
  const listing = (pane: Pane, label: string, highlight: (text: string) => Node): HTMLElement =>
    codeListing({
      id: `code-${pane}`,
      label,
      highlight,
      listed: computed(() => listed(pane)),
      lit: computed(() => lit.value[pane]),
      reveals: computed(() => (acted.value ? acted.value[0] !== pane : source.value === null)),
      chosen: computed(() => (chosen.value?.[0] === pane ? chosen.value[1] : null)),
      onChoose: (line) => act(chosen, pane, line),
      onPoint: (line) => act(pointed, pane, line),
    });
  const listings: Record<Pane, HTMLElement> = {
    tensorir: listing("tensorir", "TensorIR", python),
    lowered: listing("lowered", "Loops after lowering", python),
    wat: listing("wat", "WebAssembly text", watLine),
  };
  const measurement = new Measurement(context, { card: "roofline", button: "code-measure" }, () =>
    code.value?.wat
      ? {
          program: asked.value.program,
          function: code.value.function,
          fused: wantsFused.value,
          simulated: null,
        }
      : null,
  );

  function showPass(index: number | null): void {
    batch(() => {
      pass.value = index;
      if (chosen.value?.[0] === "lowered") chosen.value = null;
    });
  }

  passed.follow(() => {
    const [index, now] = [pass.value, code.value];
    if (index === null || !now) return null;
    const ask = async (): Promise<AfterPass> => {
      const { program } = asked.peek();
      const args = [program, now.function, index] as const;
      const { lines } = await session.look(null, "code_view.after_pass", ...args);
      return { name: now.passes![index]!.name, lines: numbered(lines) };
    };
    return () => afterPass.get(String(index), ask);
  });

  const caption = (): string => {
    if (source.value)
      return tell(source.value, lit.value, (line) =>
        after.value ? after.value.lines[line - 1]!.number : line,
      );
    if (pass.value === null) return HINT;
    if (passed.error) return passed.error;
    return passed.state === "ready" ? summary(passed.value!.lines) : "";
  };
  const fusedChoice = ({ fused, size }: MachineCode): TemplateResult => {
    const { available, on, used } = fused;
    const count = size ? ` (${used || "none"} in this kernel)` : "";
    return checkbox(`Allow fused multiply-add${count}`, {
      checked: wantsFused.value ?? on,
      testId: "code-fused",
      title: available
        ? "One rounding instead of two: faster, and the last bit of results may differ"
        : "This browser has no relaxed SIMD instructions",
      disabled: !available,
      onChange: (next) => {
        wantsFused.value = next;
        reported.ask();
      },
    });
  };
  const note = ({ error, notes }: MachineCode): TemplateResult => {
    const text = [error ? `No machine code: ${error.message}` : "", ...notes].join(" ").trim();
    return html`<p class="code-note ${error ? "is-error" : ""}" role="status"
      ?hidden=${!text}>${text}</p>`;
  };
  const textPane = (pane: Pane, title: string, tool: unknown = nothing): TemplateResult =>
    html`<section class="code-pane code-pane-${pane}">
      <header><h2>${title}</h2>${tool}</header>${listings[pane]}
    </section>`;
  const content = (now: MachineCode): TemplateResult => {
    const passes = now.passes ?? [];
    const shown = after.value ? `Loops after ${after.value.name}` : "Loops";
    const copyWat = (): unknown => now.wat && copyAndTell(now.wat.lines.join("\n"), toast);
    const copy = button("Copy", copyWat, { kind: "quiet small" });
    return html`<ul class="code-facts" data-testid="code-facts">${facts(now)}</ul>
      ${note(now)}
      ${passList(passes, pass.value, showPass)}
      <p class="code-caption" aria-live="polite" data-testid="code-caption">${caption()}</p>
      <div class="code-panes">
        ${textPane("tensorir", "TensorIR")}${textPane("lowered", shown)}
        ${textPane("wat", "WebAssembly", copy)}
      </div>
      ${measurement.template()}`;
  };
  return reported.view(
    {
      empty:
        "Run a program that defines a module to see its loops after each pass, and their WebAssembly.",
      failed: "The machine code cannot be shown",
      stopped: "Compiling was stopped.",
    },
    () => reported.settings([], false, code.value ? fusedChoice(code.value) : nothing),
    content,
  );
}

function numbered(lines: PassLine[]): AfterPass["lines"] {
  let last = 0;
  return lines.map((line) => ({ ...line, number: line.kind === "removed" ? null : ++last }));
}

/** Size and make of the code, as figures with what they count. */
function facts({ size }: MachineCode): TemplateResult | typeof nothing {
  if (!size) return nothing;
  const figure = (value: number, unit: string): TemplateResult =>
    html`<strong>${whole(value)}</strong> ${unit}`;
  const counts = (of: { instructions: number; simd: number }): TemplateResult =>
    html`${figure(of.instructions, "instructions")}, ${figure(of.simd, "SIMD")}`;
  const { bytes, loop } = size;
  const name = loop?.name ? html`<code>${loop.name}</code> ` : "";
  return html`<li>${figure(bytes, "bytes")}</li><li>${counts(size)}</li>
    ${loop ? html`<li>innermost loop ${name}${counts(loop)}</li>` : nothing}`;
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
  const count = (change: string): number => lines.filter(({ kind }) => kind === change).length;
  const [added, removed] = [count("added"), count("removed")];
  return added + removed
    ? `This pass adds ${counted(added, "line")} and removes ${counted(removed, "line")}.`
    : "This pass leaves the loops as they are.";
}

const NAMES: Record<Pane, string> = {
  tensorir: "TensorIR",
  lowered: "the loops",
  wat: "WebAssembly",
};

/** What is lit, in words. */
function tell(
  [pane, line]: Line,
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
  if (!others.length) return `${start} generates no code.`;
  return `${start}: ${others.map((other) => lineText(other, shown[other])).join(", ")}.`;
}

function lineText(pane: Pane, lines: Lines): string {
  if (pane === "wat" && lines.size > 1) return counted(lines.size, "instruction");
  const parts = ranges(lines);
  const shown = parts
    .slice(0, 3)
    .map(([first, last]) => (first === last ? String(first) : `${first}–${last}`));
  const rest = parts.length > 3 ? " …" : "";
  return `${lines.size === 1 ? "line" : "lines"} ${shown.join(", ")}${rest} of ${NAMES[pane]}`;
}
