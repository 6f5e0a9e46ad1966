/** The controls of the animation: play, steps, speed, and where it is. */

import { element } from "../../dom";

const SPEEDS = [2, 10, 50, 200, 1000, 5000, 20_000];
const START_SPEED = 50;
/** The most steps a second for those who want little motion. */
const CALM_SPEED = 2;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function wantsLittleMotion(): boolean {
  return calm.matches;
}

interface PlayerOptions {
  /** Go to a position; those in between are passed through. */
  goTo: (position: number) => void;
  nextMiss: () => number;
  /** What the last access did, for the slider. */
  describe: () => string;
  /** It has begun to play, or has stopped. */
  onPlaying: () => void;
  /** Whether anybody can see it. */
  isVisible: () => boolean;
}

export class Player {
  readonly root: HTMLElement;
  playing = false;
  private position = 0;
  private count = 0;
  private due = 0;
  private drawnAt = 0;
  private readonly play = button("play", "Play");
  private readonly slider = element("input", {
    type: "range",
    min: 0,
    step: 1,
    class: "player-slider",
    "aria-label": "Accesses made",
    "data-testid": "access-position",
  });
  private readonly speed = element("select", {
    "aria-label": "Accesses a second",
    "data-testid": "access-speed",
  });

  constructor(private readonly options: PlayerOptions) {
    const start = button("start", "To the start");
    const back = button("back", "One access back");
    const step = button("step", "One access on");
    const miss = button("miss", "To the next miss");
    this.play.classList.add("primary");
    for (const speed of SPEEDS) {
      this.speed.append(
        element(
          "option",
          { value: speed, selected: speed === START_SPEED },
          `${speed.toLocaleString("en")} / s`,
        ),
      );
    }
    this.root = element(
      "div",
      { class: "player" },
      element(
        "div",
        { class: "player-buttons", role: "group", "aria-label": "Animation" },
        start,
        back,
        this.play,
        step,
        miss,
        this.speed,
      ),
      this.slider,
    );
    this.play.addEventListener("click", () => this.toggle());
    start.addEventListener("click", () => this.jump(0));
    back.addEventListener("click", () => this.jump(this.position - 1));
    step.addEventListener("click", () => this.jump(this.position + 1));
    miss.addEventListener("click", () => this.jump(options.nextMiss()));
    this.slider.addEventListener("input", () => this.jump(Number(this.slider.value)));
    this.showSpeed();
    calm.addEventListener("change", () => this.showSpeed());
  }

  /** Begin anew with a run of `count` accesses. */
  reset(count: number): void {
    this.pause();
    this.count = count;
    this.slider.max = String(count);
    this.move(0);
  }

  toggle(): void {
    if (this.playing) this.pause();
    else this.start();
  }

  start(): void {
    if (this.playing || !this.count) return;
    if (this.position === this.count) this.move(0);
    this.playing = true;
    this.due = 0;
    this.drawnAt = performance.now();
    this.showPlay();
    requestAnimationFrame((now) => this.tick(now));
  }

  pause(): void {
    if (!this.playing) return;
    this.playing = false;
    this.showPlay();
  }

  /** Stop playing and go somewhere. */
  jump(position: number): void {
    this.pause();
    this.move(position);
  }

  /** Keys of the pictures: arrows step, Space plays. */
  onKey(event: KeyboardEvent): void {
    const far = Math.max(10, Math.round(this.count / 100));
    const actions: Record<string, () => void> = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.jump(this.position - 1),
      ArrowRight: () => this.jump(this.position + 1),
      PageUp: () => this.jump(this.position - far),
      PageDown: () => this.jump(this.position + far),
      Home: () => this.jump(0),
      End: () => this.jump(this.count),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private move(position: number): void {
    this.position = Math.min(Math.max(0, position), this.count);
    this.options.goTo(this.position);
    this.slider.value = String(this.position);
    this.slider.setAttribute("aria-valuetext", this.options.describe());
  }

  private tick(now: number): void {
    if (!this.playing) return;
    if (!this.options.isVisible()) {
      this.pause();
      return;
    }
    const speed = calm.matches ? CALM_SPEED : Number(this.speed.value);
    // A page that was not drawn for a while goes on where it was.
    this.due += (Math.min(250, now - this.drawnAt) / 1000) * speed;
    this.drawnAt = now;
    const steps = Math.floor(this.due);
    this.due -= steps;
    if (steps) this.move(this.position + steps);
    if (this.position === this.count) this.pause();
    else requestAnimationFrame((next) => this.tick(next));
  }

  private showSpeed(): void {
    this.speed.hidden = calm.matches;
  }

  private showPlay(): void {
    const name = this.playing ? "pause" : "play";
    this.play.replaceChildren(icon(name));
    this.play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.play.title = this.playing ? "Pause" : "Play";
    this.options.onPlaying();
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

function button(name: keyof typeof PATHS, label: string): HTMLButtonElement {
  const made = element("button", {
    class: "button",
    type: "button",
    title: label,
    "aria-label": label,
    "data-testid": `access-${name}`,
  });
  made.append(icon(name));
  return made;
}

function icon(name: keyof typeof PATHS): Element {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 12 12");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
