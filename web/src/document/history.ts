/** The runs of a document that are kept, and two of them compared. */

import { signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { element } from "../dom";
import { comparison, duration } from "../views/format";
import { reactive, setting } from "../views/kit";
import { diffListing, type MarkedLine } from "../views/trace/diff";
import { lineDiff, outputText } from "./compare";
import "./history.css";
import type { DocumentMemory } from "./memory";
import { moment, type RunRecord } from "./record";

/** A button that opens the runs of a document. */
export function historyButton(
  memory: () => Promise<DocumentMemory>,
  nameOf?: (cell: string) => string,
): HTMLButtonElement {
  const look = { class: "button quiet small", type: "button", "data-testid": "runs" };
  const button = element("button", { ...look, "aria-haspopup": "dialog" }, "Runs");
  button.onclick = () => void memory().then((history) => openHistory(history, nameOf));
  return button;
}

/** `nameOf` says what a run's cell is called. */
export function openHistory(
  memory: DocumentMemory,
  nameOf = (cell: string) => (Number.isNaN(Number(cell)) ? cell : `cell ${cell}`),
): void {
  const runs = [...memory.runs].reverse();
  const look = { class: "runs", "aria-label": "Runs", "data-testid": "runs-dialog" };
  const dialog = element("dialog", look);
  const [newest] = runs;
  const now = signal(newest);
  const before = signal(runs.find((run) => run !== newest && run.cell === newest?.cell) ?? runs[1]);
  const content = (): TemplateResult => html`<header>
      <h2>Runs</h2>
      <button class="button small" type="button" @click=${() => dialog.close()}>Close</button>
    </header>
    ${
      runs.length
        ? html`<div class="runs-list" tabindex="0" role="region" aria-label="List of runs"><table>
            <thead><tr><th>Earlier</th><th>Later</th><th>What</th><th>When</th><th>Time</th></tr></thead>
            <tbody>${runs.map(row)}</tbody>
          </table></div>`
        : html`<p>Nothing has run yet. Runs are listed here, and any two can be compared.</p>`
    }
    ${now.value && before.value ? differences(before.value, now.value) : nothing}`;
  const row = (run: RunRecord, at: number): TemplateResult => {
    const what = nameOf(run.cell);
    const when = moment(run.at);
    const which = `${what} ${when}, run ${runs.length - at} of ${runs.length}`;
    const radio = (name: string, chosen: typeof now): TemplateResult =>
      html`<td><input type="radio" name=${name} aria-label=${`${name}: ${which}`}
        .checked=${chosen.value === run} @change=${setting(chosen, run)}></td>`;
    return html`<tr data-testid="run-row">${radio("Earlier", before)}${radio("Later", now)}<td>${what}</td><td>${when}</td>
      <td>${run.ok ? duration(run.elapsedMs) : "failed"}</td></tr>`;
  };
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(reactive(dialog, content));
  dialog.showModal();
}

function differences(before: RunRecord, now: RunRecord): TemplateResult {
  return html`<p class="runs-times" aria-live="polite" data-testid="runs-times">${timesText(before, now)}</p>
    ${difference("Code", lineDiff(before.source, now.source))}
    ${difference("Output", lineDiff(outputText(before), outputText(now)))}`;
}

/** "2.0 s, then 1.0 s: 2.0× faster". */
export function timesText(before: RunRecord, now: RunRecord): string {
  if (!before.ok && !now.ok) return "Both failed.";
  if (!before.ok) return "The earlier one failed.";
  if (!now.ok) return "The later one failed.";
  const times = `${duration(before.elapsedMs)}, then ${duration(now.elapsedMs)}`;
  const ratio = before.elapsedMs / now.elapsedMs;
  if (!Number.isFinite(ratio) || ratio === 0 || Math.abs(ratio - 1) < 0.03) return `${times}.`;
  return `${times}: ${comparison(now.elapsedMs, before.elapsedMs)}.`;
}

function difference(title: string, lines: MarkedLine[]): TemplateResult {
  const differs = lines.some(({ kind }) => kind !== "same");
  return html`<section data-testid=${`runs-${title.toLowerCase()}`}>
    <h3>${title}${differs ? nothing : ": no difference"}</h3>
    ${
      differs
        ? html`<pre class="code" tabindex="0" role="group" aria-label=${`${title}: differences`}>${diffListing(lines)}</pre>`
        : nothing
    }
  </section>`;
}
