/** What to look at, what to compare it with, and the cache to simulate. */

import type { ReadonlySignal, Signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import type { AccessReport, CacheSettings, RunResult } from "../../python/wire";
import { choice, type Option } from "../kit";
import { size as bytesText } from "./tables";

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
  const { program, size } = asked.value;
  const change = (changed: Partial<Asked>): void => {
    asked.value = { ...asked.value, ...changed };
    onChange();
  };
  const steps = report?.steps ?? [];
  const others = [{ id: NONE, title: "none" }, ...programs].map((other) => ({
    ...other,
    disabled: other.id === program,
    hidden: other.id === program,
  }));
  return html`<div class="access-head">
    ${choice({
      label: "Module",
      id: "access-program",
      options: programs,
      value: program,
      hidden: false,
      onChange: (id) => change({ program: id, function: null, other: null }),
    })}
    ${choice({
      label: "Function",
      id: "access-function",
      options: (report?.functions ?? []).map((name) => ({ id: name, title: name })),
      value: asked.value.function ?? "",
      onChange: (name) => change({ function: name }),
    })}
    ${choice({
      label: "Compare with",
      id: "access-other",
      options: others,
      group: steps.length ? { label: "Its schedule", options: steps } : null,
      value: asked.value.other ?? NONE,
      hidden: false,
      onChange: (other) => change({ other }),
    })}
    ${choice({
      label: "Sizes",
      id: "access-size",
      options: SIZES,
      value: size,
      onChange: (next) => change({ size: next }),
    })}
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
  const numbers = (values: number[], text: (value: number) => string, refused = NEVER): Option[] =>
    values.map((value) => ({ id: String(value), title: text(value), disabled: refused(value) }));
  const wayText = (count: number): string =>
    count === 1 ? "1 (direct)" : count ? `${count} ways` : "full";
  const field = (name: keyof CacheSettings, label: string, options: Option[]): TemplateResult =>
    choice({
      label,
      id: `cache-${name}`,
      options,
      value: String(cache.value[name]),
      onChange: (value) => onChange(possible({ line, size, ways, [name]: Number(value) })),
    });
  return html`<div class="cache-settings" role="group" aria-label="The cache">
    ${field("line", "Line", numbers(LINES, bytesText))}
    ${field(
      "size",
      "Size",
      numbers(CACHES, bytesText, (value) => value < line),
    )}
    ${field(
      "ways",
      "Associativity",
      numbers(WAYS, wayText, (value) => value > size / line),
    )}
  </div>`;
}

const NEVER = (_value: number): boolean => false;

/** No set can have more lines than there are, and no cache less than one line. */
function possible({ line, size, ways }: CacheSettings): CacheSettings {
  const fitting = Math.max(line, size);
  return { line, size: fitting, ways: ways > fitting / line ? 0 : ways };
}
