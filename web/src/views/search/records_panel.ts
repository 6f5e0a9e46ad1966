/** The records of earlier searches: how many there are, and taking them along. */

import { signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { message } from "../../errors";
import { download } from "../../program/interchange";
import { acceptDrops } from "../../program/transfer";
import type { PythonSession } from "../../python/client";
import { counted } from "../format";
import { button, checkbox, setting } from "../kit";
import { kindOf, type RecordStore, toFiles } from "./records";

export class RecordsPanel {
  readonly id = "search-records";
  readonly title = "Records";
  /** Whether searches use earlier results. */
  readonly reused = signal(true);
  private readonly count = signal(0);
  private readonly lasting = signal(true);
  /** Pressed once, the button asks; pressed again, it clears. */
  private readonly asking = signal(false);
  private readonly dropArea = ref((element) => {
    if (element) acceptDrops(element as HTMLElement, (files) => void this.told(this.import(files)));
  });

  constructor(
    private readonly store: RecordStore,
    private readonly session: PythonSession,
    private readonly toast: (message: string) => void,
  ) {
    void this.refresh();
  }

  template(): TemplateResult {
    const count = this.count.value;
    const stored = this.lasting.value
      ? "They are stored in this browser."
      : "The browser's database is closed to this page, full or damaged, so they are gone when it is closed.";
    const pick = ({ currentTarget }: Event): void => {
      const input = currentTarget as HTMLInputElement;
      void this.told(this.import([...(input.files ?? [])]));
      input.value = "";
    };
    const clear = this.asking.value ? "Clear all?" : "Clear";
    return html`<div ${this.dropArea}>
      <p class="panel-note" data-testid="search-record-count" aria-live="polite"
        data-count=${count}>${counted(count, "record")} of schedules and their times. ${stored}</p>
      ${checkbox("Reuse earlier results for this program", {
        checked: this.reused,
        testId: "search-reuse",
      })}
      <div class="actions" @focusout=${setting(this.asking, false)}>
        ${button("Export", () => void this.told(this.export()), { testId: "search-export", disabled: !count })}
        <label class="button">Import …<input type="file" multiple accept=".json,application/json"
          class="visually-hidden" data-testid="search-import-files" @change=${pick}></label>
        ${button(clear, () => this.clear(), { testId: "search-clear", disabled: !count })}
      </div>
      <p class="panel-note">Records are exported as the two files of TVM’s databases,
        database_workload.json and database_tuning_record.json, and imported from them: choose both,
        or drop them here.</p>
    </div>`;
  }

  async refresh(): Promise<void> {
    this.count.value = await this.store.count();
    this.lasting.value = this.store.lasting;
  }

  private async export(): Promise<string> {
    const files = toFiles(await this.store.all());
    for (const [name, text] of Object.entries(files)) download(name, text, "application/json");
    return "Two files were downloaded";
  }

  private async import(chosen: File[]): Promise<string> {
    const texts: Record<string, string> = {};
    for (const file of chosen) {
      const text = await file.text();
      const kind = kindOf(file.name, text);
      if (!kind) throw new Error(`Not a file of records: ${file.name}`);
      texts[kind] = text;
    }
    if (Object.keys(texts).length < 2)
      throw new Error("Both files are needed: workloads and records");
    const { groups, warnings } = await this.session.call("search.read_files", texts);
    const { store } = this;
    const before = await store.count();
    for (const { key, line, records } of groups) await store.add({ key, line }, records);
    const fresh = (await store.count()) - before;
    const skipped = warnings.length
      ? `; ${counted(warnings.length, "line")} skipped: ${warnings[0]}`
      : "";
    return `${counted(fresh, "new record")} imported${skipped}`;
  }

  private clear(): void {
    this.asking.value = !this.asking.value;
    if (this.asking.value) return;
    void this.told(this.store.clear().then(() => "Records deleted"));
  }

  private async told(work: Promise<string>): Promise<void> {
    this.toast(await work.catch(message));
    await this.refresh();
  }
}
