/** Measuring a function against what this tab can do at best: a card with a button and a roofline. */

import { signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { button } from "../kit";
import { Plot } from "../plot";
import { Resource } from "../resource";
import type { ViewContext } from "../view";
import { type Measured, peakOf, roofline, sentence } from "./roofline";

/** What can be measured. */
export interface Kernel {
  program: string;
  function: string;
  /** Whether fused multiply-adds are wanted; null for what the browser has. */
  fused: boolean | null;
  /** Operations for each byte of simulated traffic, where that is known. */
  simulated: number | null;
}

export class Measurement {
  private readonly measured = new Resource<Measured>();
  private readonly measuring = signal("");
  private readonly plot = new Plot(230, "roofline-plot");

  /** `ids` are the test ids of the card and its button; `kernel` is null for nothing to measure. */
  constructor(
    private readonly context: ViewContext,
    private readonly ids: { card: string; button: string },
    private readonly kernel: () => Kernel | null,
  ) {}

  /** Another kernel is shown. */
  reset(): void {
    this.measured.set(null);
  }

  template(): TemplateResult {
    const { measured, ids } = this;
    const { measurement } = measured.value ?? {};
    return html`<section class="card roofline-card" data-testid=${ids.card}
      aria-label="Speed against the machine’s peak"
      data-gflops=${measurement ? measurement.rate / 1e9 : nothing}
      data-peak=${measurement ? peakOf(measurement) / 1e9 : nothing}>
      <header class="card-head">
        <p class="roofline-outcome" aria-live="polite">${this.outcome()}</p>
        ${button("Measure", this.measure, {
          testId: ids.button,
          disabled: this.context.busy.value || !this.kernel(),
        })}
      </header>
      ${measured.value ? roofline(this.plot, measured.value) : nothing}
    </section>`;
  }

  private outcome(): string {
    const { measured } = this;
    const kernel = this.kernel();
    if (!kernel) return "Nothing to measure.";
    if (measured.busy)
      return `Measuring ${this.measuring.value}, and what this tab can do at best …`;
    if (measured.error) return measured.stopped ? "Stopped." : `Not measured: ${measured.error}`;
    return measured.value
      ? sentence(measured.value.name, measured.value.measurement)
      : `Measure how close ${kernel.function} comes to this tab’s peak.`;
  }

  private readonly measure = async ({ currentTarget }: Event): Promise<void> => {
    const kernel = this.kernel();
    if (!kernel) return;
    const { session, during } = this.context;
    const { program, function: name, fused, simulated } = kernel;
    const card = (currentTarget as HTMLElement).closest("section")!;
    this.measuring.value = name;
    const ask = async (): Promise<Measured> => ({
      name,
      measurement: await session.call("code_measure.measure", program, name, fused),
      simulated,
    });
    const done = await during(
      `Measuring ${name}`,
      () => void session.stop(),
      () => this.measured.load(ask),
    );
    if (done) card.scrollIntoView({ block: "nearest" });
  };
}
