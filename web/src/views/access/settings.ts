/** What to look at, what to compare it with, and the cache to simulate. */

import type { ReadonlySignal, Signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import type { AccessReport, CacheSettings, RunResult } from "../../python/wire";
import { bytes } from "../format";
import { type Choice, choice } from "../kit";

/** What is compared with where nothing is. */
export const NONE = "none";

const SIZES = [
  { id: "", title: "automatic" },
  ...["4", "8", "16", "32", "64"].map((id) => ({ id, title: `up to ${id}` })),
  { id: "0", title: "as it is" },
];
const LINES = [8, 16, 32, 64, 128];
const CACHES = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
const WAYS = [1, 2, 4, 8, 16, 0];

/** What the reader has chosen; null where Python is to choose. */
export interface Asked {
  program: string;
  function: string | null;
  other: string | null;
  /** The largest size to leave; empty for what is best, "0" for the program as it is. */
  size: string;
}

/** The program, its function, what it is compared with, and its size. */
export function programSettings(
  programs: RunResult["programs"],
  asked: Signal<Asked>,
  report: AccessReport | null,
  onChange: () => void,
): TemplateResult {
  const { program, size, function: name, other } = asked.value;
  const field = (
    label: string,
    id: string,
    options: Choice["options"],
    value: string,
    change: (chosen: string) => Partial<Asked>,
    more: Partial<Choice> = {},
  ): TemplateResult =>
    choice({
      label,
      id: `access-${id}`,
      options,
      value,
      onChange: (chosen) => {
        asked.value = { ...asked.value, ...change(chosen) };
        onChange();
      },
      ...more,
    });
  const steps = report?.steps ?? [];
  const others = [{ id: NONE, title: "none" }, ...programs.filter(({ id }) => id !== program)];
  return html`<div class="access-head">
    ${field(
      "Module",
      "program",
      programs,
      program,
      (id) => ({ program: id, function: null, other: null }),
      { hidden: false },
    )}
    ${field("Function", "function", report?.functions ?? [], name ?? "", (id) => ({ function: id }))}
    ${field("Compare with", "other", others, other ?? NONE, (id) => ({ other: id }), {
      group: steps.length ? { label: "Its schedule", options: steps } : null,
      hidden: false,
    })}
    ${field("Sizes", "size", SIZES, size, (id) => ({ size: id }))}
  </div>`;
}

/** The title of what is compared with. */
export function otherTitle(
  { other }: Asked,
  programs: RunResult["programs"],
  report: AccessReport,
): string {
  return [...programs, ...report.steps].find(({ id }) => id === other)?.title ?? "";
}

export function cacheSettings(
  cache: ReadonlySignal<CacheSettings>,
  onChange: (settings: CacheSettings) => void,
): TemplateResult {
  const { line, size, ways } = cache.value;
  const field = (
    name: keyof CacheSettings,
    label: string,
    values: number[],
    text: (value: number) => string,
    most = Infinity,
    least = 0,
  ): TemplateResult =>
    choice({
      label,
      id: `cache-${name}`,
      options: values.map((value) => ({
        id: String(value),
        title: text(value),
        disabled: value > most || value < least,
      })),
      value: String(cache.value[name]),
      onChange: (value) => onChange(possible({ line, size, ways, [name]: Number(value) })),
    });
  return html`<div class="cache-settings" role="group" aria-label="Cache">
    ${field("line", "Line", LINES, bytes)}${field("size", "Size", CACHES, bytes, Infinity, line)}
    ${field("ways", "Associativity", WAYS, wayText, size / line)}
  </div>`;
}

function wayText(count: number): string {
  return count === 1 ? "1 (direct)" : count ? `${count} ways` : "full";
}

/** No set can have more lines than there are, and no cache less than one line. */
function possible({ line, size, ways }: CacheSettings): CacheSettings {
  const fitting = Math.max(line, size);
  return { line, size: fitting, ways: ways > fitting / line ? 0 : ways };
}
