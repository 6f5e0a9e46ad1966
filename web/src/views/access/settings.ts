/** What to look at, what to compare it with, and the cache to simulate. */

import { element } from "../../dom";
import { type AccessReport, type CacheSettings, FIRST_CACHE } from "../../python/wire";
import { size as bytesText } from "./tables";

const SIZES: [value: string, text: string][] = [
  ["", "a good size"],
  ["4", "up to 4"],
  ["8", "up to 8"],
  ["16", "up to 16"],
  ["32", "up to 32"],
  ["64", "up to 64"],
  ["0", "as it is"],
];
const LINES = [8, 16, 32, 64, 128];
const CACHES = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
const WAYS = [1, 2, 4, 8, 16, 0];

interface SettingsOptions {
  onProgram: () => void;
  /** Another function, comparison or size was chosen. */
  onChoice: () => void;
  onCache: () => void;
}

export class Settings {
  readonly programs: HTMLElement;
  readonly cache: HTMLElement;
  private readonly programBox = select("access-program");
  private readonly functionBox = select("access-function");
  private readonly otherBox = select("access-other");
  private readonly sizeBox = select("access-size");
  private readonly lineBox = select("cache-line");
  private readonly bytesBox = select("cache-size");
  private readonly waysBox = select("cache-ways");
  private readonly functionField = field("Function", this.functionBox);

  constructor(options: SettingsOptions) {
    this.sizeBox.append(...SIZES.map(([value, text]) => element("option", { value }, text)));
    const choices = (
      box: HTMLSelectElement,
      values: number[],
      start: number,
      text: (value: number) => string,
    ): void => {
      box.append(
        ...values.map((value) =>
          element("option", { value, selected: value === start }, text(value)),
        ),
      );
    };
    choices(this.lineBox, LINES, FIRST_CACHE.line, bytesText);
    choices(this.bytesBox, CACHES, FIRST_CACHE.size, bytesText);
    choices(this.waysBox, WAYS, FIRST_CACHE.ways, (ways) =>
      ways === 1 ? "1 (direct)" : ways ? `${ways} ways` : "full",
    );
    this.programs = element(
      "div",
      { class: "access-head" },
      field("Module", this.programBox),
      this.functionField,
      field("Compare with", this.otherBox),
      field("Sizes", this.sizeBox),
    );
    this.cache = element(
      "div",
      { class: "cache-settings", role: "group", "aria-label": "The cache" },
      field("Line", this.lineBox),
      field("Size", this.bytesBox),
      field("Associativity", this.waysBox),
    );
    this.programBox.addEventListener("change", options.onProgram);
    for (const box of [this.functionBox, this.otherBox, this.sizeBox])
      box.addEventListener("change", options.onChoice);
    for (const box of [this.lineBox, this.bytesBox, this.waysBox]) {
      box.addEventListener("change", () => {
        this.allow();
        options.onCache();
      });
    }
    this.allow();
  }

  get program(): string {
    return this.programBox.value;
  }

  get function(): string {
    return this.functionBox.value;
  }

  get other(): string {
    return this.otherBox.value;
  }

  get otherTitle(): string {
    return this.otherBox.selectedOptions[0]?.text ?? "";
  }

  /** The largest size to leave; null for a good choice, 0 for the program as it is. */
  get size(): number | null {
    return this.sizeBox.value === "" ? null : Number(this.sizeBox.value);
  }

  get settings(): CacheSettings {
    return {
      line: Number(this.lineBox.value),
      size: Number(this.bytesBox.value),
      ways: Number(this.waysBox.value),
    };
  }

  /** Offer the programs of a run, the last of them chosen. */
  offer(programs: { id: string; title: string }[], none: string): void {
    const options = (): HTMLElement[] =>
      programs.map(({ id, title }) => element("option", { value: id }, title));
    this.programBox.replaceChildren(...options());
    this.programBox.value = programs.at(-1)!.id;
    this.otherBox.replaceChildren(element("option", { value: none }, "nothing"), ...options());
  }

  /** Show what an answer is about. */
  show({ functions, function: name, steps }: AccessReport, other: string): void {
    this.functionBox.replaceChildren(
      ...functions.map((each) => element("option", { value: each }, each)),
    );
    this.functionBox.value = name;
    this.functionField.hidden = functions.length < 2;
    this.otherBox.querySelector("optgroup")?.remove();
    if (steps.length) {
      const options = steps.map(({ id, title }) => element("option", { value: id }, title));
      this.otherBox.append(element("optgroup", { label: "Its schedule" }, ...options));
    }
    for (const option of this.otherBox.options)
      option.hidden = option.disabled = option.value === this.program;
    this.otherBox.value = other;
  }

  /** No set can have more lines than there are, and no cache less than one line. */
  private allow(): void {
    const { line } = this.settings;
    for (const option of this.bytesBox.options) option.disabled = Number(option.value) < line;
    for (const option of this.waysBox.options)
      option.disabled = Number(option.value) > this.settings.size / line;
    for (const box of [this.bytesBox, this.waysBox]) {
      if (box.selectedOptions[0]?.disabled) box.value = box === this.waysBox ? "0" : String(line);
    }
  }
}

function select(id: string): HTMLSelectElement {
  return element("select", { id, "data-testid": id });
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element("label", { class: "field", for: control.id }, label, control);
}
