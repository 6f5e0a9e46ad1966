/** The records of earlier searches: how many there are, and taking them along. */

import { element } from "../../dom";
import { download } from "../../program/interchange";
import type { PythonSession } from "../../python/client";
import type { SearchPanel } from "./panel";
import { kindOf, type RecordStore, toFiles } from "./records";

export class RecordsPanel implements SearchPanel {
  readonly id = "search-records";
  readonly title = "Records";
  readonly root: HTMLElement;
  private readonly count = element("p", {
    class: "panel-note",
    "data-testid": "search-record-count",
    "aria-live": "polite",
  });
  private readonly reuse = element("input", {
    type: "checkbox",
    id: "search-reuse",
    "data-testid": "search-reuse",
    checked: true,
  });
  private readonly files = element("input", {
    type: "file",
    multiple: true,
    accept: ".json,application/json",
    hidden: true,
    "data-testid": "search-import-files",
  });
  private readonly exporting = button("search-export", "Export");
  private readonly importing = button("search-import", "Import …");
  private readonly clearing = button("search-clear", "Clear");

  constructor(
    private readonly store: Promise<RecordStore>,
    private readonly session: PythonSession,
    private readonly toast: (message: string) => void,
  ) {
    this.root = element(
      "div",
      { class: "search-panel" },
      this.count,
      element(
        "label",
        { class: "check", for: "search-reuse" },
        this.reuse,
        "Go on from records of earlier searches of the same program; nothing is measured twice",
      ),
      element("div", { class: "actions" }, this.exporting, this.importing, this.clearing),
      this.files,
      element(
        "p",
        { class: "panel-note" },
        "Records are exported as the two files of TVM’s databases, database_workload.json and database_tuning_record.json, and imported from them: choose both, or drop them here.",
      ),
    );
    this.exporting.addEventListener("click", () => void this.told(this.export()));
    this.importing.addEventListener("click", () => this.files.click());
    this.files.addEventListener("change", () => {
      void this.told(this.import([...(this.files.files ?? [])]));
      this.files.value = "";
    });
    this.clearing.addEventListener("click", () => this.clear());
    this.clearing.addEventListener("blur", () => this.ask(false));
    this.root.addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    this.root.addEventListener("drop", (event) => {
      event.preventDefault();
      event.stopPropagation();
      void this.told(this.import([...(event.dataTransfer?.files ?? [])]));
    });
    void this.refresh();
  }

  /** Whether searches go on from records. */
  get reused(): boolean {
    return this.reuse.checked;
  }

  show(): void {
    void this.refresh();
  }

  async refresh(): Promise<void> {
    const store = await this.store;
    const found = await store.count();
    const kept = store.lasting
      ? "They are kept by this browser."
      : "The browser does not let this page store anything, so they are gone when it is closed.";
    this.count.textContent = `${found} ${found === 1 ? "record" : "records"} of schedules and their times. ${kept}`;
    this.count.dataset.count = String(found);
    this.exporting.disabled = this.clearing.disabled = found === 0;
  }

  private async export(): Promise<string> {
    const files = toFiles(await (await this.store).all());
    for (const [name, text] of Object.entries(files)) download(name, text, "application/json");
    return "Two files are downloaded";
  }

  private async import(chosen: File[]): Promise<string> {
    const texts: Record<string, string> = {};
    for (const file of chosen) {
      const text = await file.text();
      const kind = kindOf(file.name, text);
      if (!kind) throw new Error(`${file.name} is no file of records`);
      texts[kind] = text;
    }
    if (Object.keys(texts).length < 2)
      throw new Error("Both files are needed: workloads and records");
    const { groups, warnings } = await this.session.call("search.read_files", texts);
    const store = await this.store;
    const before = await store.count();
    for (const { key, line, records } of groups) await store.add({ key, line }, records);
    const fresh = (await store.count()) - before;
    const skipped = warnings.length
      ? `; ${warnings.length} ${warnings.length === 1 ? "line was" : "lines were"} skipped: ${warnings[0]}`
      : "";
    return `${fresh} new ${fresh === 1 ? "record" : "records"} imported${skipped}`;
  }

  private clear(): void {
    if (this.clearing.dataset.asked === undefined) this.ask(true);
    else {
      this.ask(false);
      void this.told(this.store.then((store) => store.clear()).then(() => "The records are gone"));
    }
  }

  /** Pressed once, the button asks; pressed again, it does it. */
  private ask(on: boolean): void {
    this.clearing.textContent = on ? "Really clear?" : "Clear";
    if (on) this.clearing.dataset.asked = "";
    else delete this.clearing.dataset.asked;
  }

  private async told(work: Promise<string>): Promise<void> {
    try {
      this.toast(await work);
    } catch (error) {
      this.toast(error instanceof Error ? error.message : String(error));
    }
    await this.refresh();
  }
}

function button(id: string, text: string): HTMLButtonElement {
  return element("button", { class: "button", "data-testid": id, type: "button" }, text);
}
