/** The controls of the animation: play, steps, speed, and where it is. */

import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { whole } from "../format";
import { choice, fieldValue } from "../kit";
import type { Replay } from "./replay";
import { accessSentence } from "./tables";

const SPEEDS = [2, 10, 50, 200, 1000, 5000, 20_000];
const START_SPEED = "50";
/** The most steps a second for those who want little motion. */
const CALM_SPEED = 2;

const query = matchMedia("(prefers-reduced-motion: reduce)");
/** Whether the reader wants little motion. */
export const calm = signal(query.matches);
query.addEventListener("change", () => {
  calm.value = query.matches;
});

export class Player {
  readonly playing = signal(false);
  /** Of the replay, which is there before this says so. */
  readonly position = signal(0);
  /** What the last access did. */
  readonly sentence = computed(() => {
    void this.position.value;
    return this.replay.value ? accessSentence(this.replay.value) : "";
  });
  private readonly speed = signal(START_SPEED);
  private due = 0;
  private drawnAt = 0;

  constructor(
    private readonly replay: ReadonlySignal<Replay | null>,
    private readonly panel: HTMLElement,
  ) {}

  private get count(): number {
    return this.replay.value?.count ?? 0;
  }

  template(): TemplateResult {
    const here = this.position.value;
    const playing = this.playing.value;
    const press = (name: keyof typeof PATHS, label: string, run: () => void, testId = name) => html`
      <button class="button ${testId === "play" ? "primary" : ""}" type="button" title=${label}
        aria-label=${label} data-testid="access-${testId}" @click=${run}
        ><svg viewBox="0 0 12 12" aria-hidden="true"><path d=${PATHS[name]}></path></svg></button>`;
    return html`<div class="player">
      <div class="player-buttons" role="group" aria-label="Animation">
        ${press("start", "To the start", () => this.jump(0))}
        ${press("back", "Previous access", () => this.jump(here - 1))}
        ${press(playing ? "pause" : "play", playing ? "Pause" : "Play", () => this.toggle(), "play")}
        ${press("step", "Next access", () => this.jump(here + 1))}
        ${press("miss", "To the next miss", () => this.jump(this.replay.value?.nextMiss() ?? 0))}
        ${choice({
          label: "Accesses a second",
          id: "access-speed",
          options: SPEEDS.map((speed) => ({ id: String(speed), title: `${whole(speed)} / s` })),
          value: this.speed,
          hidden: calm.value,
        })}
      </div>
      <input type="range" min="0" step="1" max=${this.count} class="player-slider"
        aria-label="Accesses made" data-testid="access-position" .value=${live(String(here))}
        aria-valuetext=${this.sentence.value}
        @input=${(event: Event) => this.jump(Number(fieldValue(event)))}>
    </div>`;
  }

  toggle(): void {
    if (this.playing.value) this.pause();
    else this.start();
  }

  start(): void {
    if (this.playing.value || !this.count) return;
    if (this.position.value === this.count) this.jump(0);
    this.playing.value = true;
    this.due = 0;
    this.drawnAt = performance.now();
    requestAnimationFrame(this.tick);
  }

  pause(): void {
    this.playing.value = false;
  }

  /** Stop playing and go somewhere. */
  jump(position: number): void {
    this.pause();
    this.move(position);
  }

  /** Keys of the pictures: arrows step, Space plays. */
  readonly onKey = (event: KeyboardEvent): void => {
    const { count } = this;
    const here = this.position.value;
    const far = Math.max(10, Math.round(count / 100));
    const target = {
      ArrowLeft: here - 1,
      ArrowRight: here + 1,
      PageUp: here - far,
      PageDown: here + far,
      Home: 0,
      End: count,
      " ": here,
    }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (event.key === " ") this.toggle();
    else this.jump(target);
  };

  private move(position: number): void {
    this.replay.value?.goTo(position);
    this.position.value = this.replay.value?.position ?? 0;
  }

  private readonly tick = (now: number): void => {
    if (this.panel.hidden) this.pause();
    if (!this.playing.value) return;
    const speed = calm.value ? CALM_SPEED : Number(this.speed.value);
    // A page that was not drawn for a while goes on where it was.
    this.due += (Math.min(250, now - this.drawnAt) / 1000) * speed;
    this.drawnAt = now;
    const steps = Math.floor(this.due);
    this.due -= steps;
    if (steps) this.move(this.position.value + steps);
    if (this.position.value === this.count) this.pause();
    else requestAnimationFrame(this.tick);
  };
}

const PATHS = {
  play: "M3 1v10l8-5z",
  pause: "M2 1h3v10H2zM7 1h3v10H7z",
  start: "M1 1h2v10H1zM11 1v10L4 6z",
  back: "M9 1v10L2 6z M10 1h1v10h-1z",
  step: "M3 1v10l7-5z M1 1h1v10H1z",
  miss: "M1 1v10l5-5zM6 1v10l5-5z M11 1h1v10h-1z",
};
