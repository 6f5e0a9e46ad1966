/** The controls of the animation: play, steps, speed, and where it is. */

import { signal } from "@preact/signals-core";
import { html, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { fieldValue, optionList } from "../kit";

const SPEEDS = [2, 10, 50, 200, 1000, 5000, 20_000];
const START_SPEED = 50;
/** The most steps a second for those who want little motion. */
const CALM_SPEED = 2;

const query = matchMedia("(prefers-reduced-motion: reduce)");
/** Whether the reader wants little motion. */
export const calm = signal(query.matches);
query.addEventListener("change", () => {
  calm.value = query.matches;
});

interface PlayerOptions {
  /** Called before `position` says so; those in between are passed through. */
  goTo: (position: number) => void;
  nextMiss: () => number;
  /** What the last access did, for the slider. */
  describe: () => string;
  /** Whether anybody can see it. */
  isVisible: () => boolean;
}

export class Player {
  readonly playing = signal(false);
  readonly position = signal(0);
  private readonly count = signal(0);
  private readonly speed = signal(START_SPEED);
  private due = 0;
  private drawnAt = 0;

  constructor(private readonly options: PlayerOptions) {}

  template(): TemplateResult {
    const here = this.position.value;
    const playing = this.playing.value;
    const to = (position: () => number) => (): void => this.jump(position());
    const play = playing ? "Pause" : "Play";
    const speeds = SPEEDS.map((speed) => ({
      id: String(speed),
      title: `${speed.toLocaleString("en")} / s`,
    }));
    return html`<div class="player">
      <div class="player-buttons" role="group" aria-label="Animation">
        ${button(
          "start",
          "To the start",
          to(() => 0),
        )}
        ${button(
          "back",
          "Previous access",
          to(() => here - 1),
        )}
        ${button("play", play, () => this.toggle(), playing ? PATHS.pause : PATHS.play)}
        ${button(
          "step",
          "Next access",
          to(() => here + 1),
        )}
        ${button("miss", "To the next miss", to(this.options.nextMiss))}
        <select aria-label="Accesses a second" data-testid="access-speed" ?hidden=${calm.value}
          @change=${(event: Event) => {
            this.speed.value = Number(fieldValue(event));
          }}>${optionList(speeds, String(this.speed.value))}</select>
      </div>
      <input type="range" min="0" step="1" max=${this.count.value} class="player-slider"
        aria-label="Accesses made" data-testid="access-position" .value=${live(String(here))}
        aria-valuetext=${this.options.describe()}
        @input=${(event: Event) => this.jump(Number(fieldValue(event)))}>
    </div>`;
  }

  /** Begin anew with a run of `count` accesses. */
  reset(count: number): void {
    this.pause();
    this.count.value = count;
    this.move(0);
  }

  toggle(): void {
    if (this.playing.value) this.pause();
    else this.start();
  }

  start(): void {
    const count = this.count.value;
    if (this.playing.value || !count) return;
    if (this.position.value === count) this.move(0);
    this.playing.value = true;
    this.due = 0;
    this.drawnAt = performance.now();
    requestAnimationFrame((now) => this.tick(now));
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
    const [here, count] = [this.position.value, this.count.value];
    const far = Math.max(10, Math.round(count / 100));
    const targets: Record<string, number> = {
      ArrowLeft: here - 1,
      ArrowRight: here + 1,
      PageUp: here - far,
      PageDown: here + far,
      Home: 0,
      End: count,
    };
    const target = targets[event.key];
    const plain = !(event.ctrlKey || event.metaKey || event.altKey);
    if (!plain || (target === undefined && event.key !== " ")) return;
    event.preventDefault();
    if (target === undefined) this.toggle();
    else this.jump(target);
  };

  private move(position: number): void {
    const target = Math.min(Math.max(0, position), this.count.value);
    this.options.goTo(target);
    this.position.value = target;
  }

  private tick(now: number): void {
    if (!this.playing.value) return;
    if (!this.options.isVisible()) {
      this.pause();
      return;
    }
    const speed = calm.value ? CALM_SPEED : this.speed.value;
    // A page that was not drawn for a while goes on where it was.
    this.due += (Math.min(250, now - this.drawnAt) / 1000) * speed;
    this.drawnAt = now;
    const steps = Math.floor(this.due);
    this.due -= steps;
    if (steps) this.move(this.position.value + steps);
    if (this.position.value === this.count.value) this.pause();
    else requestAnimationFrame((next) => this.tick(next));
  }
}

const PATHS = {
  play: "M3 1v10l8-5z",
  pause: "M2 1h3v10H2zM7 1h3v10H7z",
  start: "M1 1h2v10H1zM11 1v10L4 6z",
  back: "M9 1v10L2 6z M10 1h1v10h-1z",
  step: "M3 1v10l7-5z M1 1h1v10H1z",
  miss: "M1 1v10l5-5zM6 1v10l5-5z M11 1h1v10h-1z",
};

function button(
  name: keyof typeof PATHS,
  label: string,
  run: () => void,
  path = PATHS[name],
): TemplateResult {
  return html`<button class="button ${name === "play" ? "primary" : ""}" type="button"
    title=${label} aria-label=${label} data-testid="access-${name}" @click=${run}
    ><svg viewBox="0 0 12 12" aria-hidden="true"><path d=${path}></path></svg></button>`;
}
