/** What a search has come to, in a line or two: the best, how far it is, how fast, what failed. */

import { html, nothing, type TemplateResult } from "lit-html";
import { comparison, counted, duration, gflops, timing } from "../format";
import type { Search } from "./search";
import { bestOf, failures } from "./trials";

export function summary(search: Search | null, onChoose: (index: number) => void): TemplateResult {
  const winner = search && bestOf(search.trials);
  const failed = failures(search?.trials ?? []);
  const figures = search?.figures;
  const perSecond = figures?.rate ?? null;
  const rate = figures && [
    perSecond === null ? "" : counted(figures.trials, "trial"),
    perSecond === null ? "" : duration(figures.seconds * 1000),
    perSecond === null ? "" : `${perSecond.toFixed(1)} trials/s`,
    search.workers ? counted(search.workers, "worker") : "",
    search.confirming ? `best confirmed in ${duration(figures.confirming * 1000)}` : "",
    search.state.value === "paused" ? "paused" : "",
  ];
  return html`<div>
    <div class="search-summary">
      <button class="search-best" data-testid="search-best" type="button" aria-disabled=${!winner}
        data-ms=${winner ? winner.seconds * 1000 : nothing}
        @click=${() => winner && onChoose(winner.index)}>${best(search)}</button>
      <progress class="search-progress" max="1" value=${search ? (search.share ?? nothing) : 0}
        aria-label="Trials done"></progress>
    </div>
    <p class="search-rate" data-testid="search-rate">${rate?.filter(Boolean).join(" · ") ?? ""}</p>
    <ul class="search-failures" data-testid="search-failures" ?hidden=${!failed.length}>${failed.map(
      ({ reason, count, first }) => html`<li><button class="failure" type="button"
        @click=${() => onChoose(first)}>${count} failed: ${reason}</button></li>`,
    )}</ul>
  </div>`;
}

function best(search: Search | null): TemplateResult {
  const label = (text: string): TemplateResult => html`<span class="best-label">${text}</span>`;
  const winner = search && bestOf(search.trials);
  if (!winner) return html`${label("Best")}<strong>–</strong>`;
  const { seconds } = winner;
  const facts = [
    search.operations ? gflops(search.operations / seconds) : "",
    search.baseline ? comparison(seconds, search.baseline) : "",
  ];
  const origin = winner.state === "recalled" ? "from an earlier search" : `trial ${winner.index}`;
  return html`${label(`Best, ${origin}`)}<strong>${timing(seconds)}</strong>${label(
    facts.filter(Boolean).join(" · "),
  )}`;
}
