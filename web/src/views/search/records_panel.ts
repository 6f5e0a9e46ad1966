/** The records of earlier searches: how many there are, and taking them along. */

import { signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { download } from "../../program/interchange";
import type { PythonSession } from "../../python/client";
import { counted } from "../kit";
import { message } from "../resource";
import type { SearchPanel } from "./panel";
import { kindOf, type RecordStore, toFiles } from "./records";

export class RecordsPanel implements SearchPanel {
  readonly id = "search-records";
  readonly title = "Records";
  /** Whether searches use earlier results. */
  reused = true;
  private readonly count = signal(0);
  private readonly lasting = signal(true);
  /** Pressed once, the button asks; pressed again, it clears. */
  private readonly asking = signal(false);

  constructor(
    private readonly store: Promise<RecordStore>,
    private readonly session: PythonSession,
    private readonly toast: (message: string) => void,
  ) {
    void this.refresh();
  }

  template(): TemplateResult {
    const count = this.count.value;
    const stored = this.lasting.value
      ? "They are stored in this browser."
      : "The browser does not let this page store anything, so they are gone when it is closed.";
    const pick = ({ currentTarget }: Event): void => {
      const input = currentTarget as HTMLInputElement;
      void this.told(this.import([...(input.files ?? [])]));
      input.value = "";
    };
    const over = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      event.stopPropagation();
      void this.told(this.import([...(event.dataTransfer?.files ?? [])]));
    };
    const button = (id: string, text: string, disabled: boolean, run: (event: Event) => void) =>
      html`<button class="button" type="button" data-testid=${id} ?disabled=${disabled}
        data-asked=${id === "search-clear" && this.asking.value ? "" : nothing} @click=${run}
        @blur=${() => {
          this.asking.value = false;
        }}>${text}</button>`;
    return html`<div @dragover=${over} @drop=${drop}>
      <p class="panel-note" data-testid="search-record-count" aria-live="polite"
        data-count=${count}>${counted(count, "record")} of schedules and their times. ${stored}</p>
      <label class="check" for="search-reuse"><input type="checkbox" id="search-reuse"
        data-testid="search-reuse" .checked=${this.reused} @change=${({ currentTarget }: Event) => {
          this.reused = (currentTarget as HTMLInputElement).checked;
        }}>Reuse earlier results for this program</label>
      <div class="actions">
        ${button("search-export", "Export", !count, () => void this.told(this.export()))}
        ${button("search-import", "Import …", false, ({ currentTarget }) =>
          (currentTarget as HTMLElement)
            .parentElement!.parentElement!.querySelector<HTMLInputElement>("[type=file]")!
            .click(),
        )}
        ${button("search-clear", this.asking.value ? "Clear all?" : "Clear", !count, () => this.clear())}
      </div>
      <input type="file" multiple accept=".json,application/json" hidden
        data-testid="search-import-files" @change=${pick}>
      <p class="panel-note">Records are exported as the two files of TVM’s databases,
        database_workload.json and database_tuning_record.json, and imported from them: choose both,
        or drop them here.</p>
    </div>`;
  }

  async refresh(): Promise<void> {
    const store = await this.store;
    this.lasting.value = store.lasting;
    this.count.value = await store.count();
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
      if (!kind) throw new Error(`Not a file of records: ${file.name}`);
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
      ? `; ${counted(warnings.length, "line")} skipped: ${warnings[0]}`
      : "";
    return `${fresh} new ${fresh === 1 ? "record" : "records"} imported${skipped}`;
  }

  private clear(): void {
    this.asking.value = !this.asking.value;
    if (this.asking.value) return;
    void this.told(this.store.then((store) => store.clear()).then(() => "Records deleted"));
  }

  private async told(work: Promise<string>): Promise<void> {
    try {
      this.toast(await work);
    } catch (error) {
      this.toast(message(error));
    }
    await this.refresh();
  }
}
