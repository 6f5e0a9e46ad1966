/** The size of what is recorded, and the cache to simulate. */

import type { ReadonlySignal, Signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import type { CacheSettings } from "../../python/wire";
import { bytes } from "../format";
import { choice } from "../kit";

const SIZES = [
  { id: "", title: "automatic" },
  ...["4", "8", "16", "32", "64"].map((id) => ({ id, title: `up to ${id}` })),
  { id: "0", title: "as it is" },
];
const LINES = [8, 16, 32, 64, 128];
const CACHES = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
const WAYS = [1, 2, 4, 8, 16, 0];

/** The largest size to leave; empty for what is best, "0" for the program as it is. */
export function sizeChoice(size: Signal<string>, onChange: () => void): TemplateResult {
  return choice({ label: "Sizes", id: "access-size", options: SIZES, value: size, onChange });
}

export function cacheSettings(
  cache: ReadonlySignal<CacheSettings>,
  onChange: (settings: CacheSettings) => void,
): TemplateResult {
  const field = (
    name: keyof CacheSettings,
    label: string,
    values: number[],
    text: (value: number) => string,
  ): TemplateResult => {
    const changed = (value: number): CacheSettings => possible({ ...cache.value, [name]: value });
    return choice({
      label,
      id: `cache-${name}`,
      options: values.map((value) => ({
        id: String(value),
        title: text(value),
        disabled: changed(value)[name] !== value,
      })),
      value: String(cache.value[name]),
      onChange: (value) => onChange(changed(Number(value))),
    });
  };
  return html`<div class="cache-settings" role="group" aria-label="Cache">
    ${field("line", "Line", LINES, bytes)}${field("size", "Size", CACHES, bytes)}
    ${field("ways", "Associativity", WAYS, wayText)}
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
