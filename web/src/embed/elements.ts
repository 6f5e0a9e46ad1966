/**
 * `<mlc-cell>` and `<mlc-lesson>`: programs and lessons of the playground inside any page.
 *
 * One classic script without dependencies. An element shows what is in it, the static code, until
 * its reader presses Run: only then a frame of the playground takes its place. Frames of one page
 * share one Python: the first one has it, the later ones get a line to it.
 */

import type { FrameOptions, FromFrame, ToFrame } from "./messages";

(() => {
  const MARK = "mlcweb";
  const script = document.currentScript as HTMLScriptElement | null;
  /** Folder of the playground: where this script came from. */
  const base = new URL(".", script?.src || document.baseURI).href;
  const origin = new URL(base).origin;

  const STYLE = `
    :host { display: block; margin: 1em 0; font: 14px/1.45 ui-sans-serif, system-ui, sans-serif; }
    :host([hidden]) { display: none; }
    .bar { display: flex; gap: 10px; align-items: center; margin-top: 6px; }
    button { font: inherit; font-weight: 600; min-height: 34px; padding: 0 14px; border: 0; border-radius: 6px; background: #0f5f63; color: #fff; cursor: pointer; }
    button:focus-visible { outline: 2px solid #0f5f63; outline-offset: 2px; }
    p { margin: 0; opacity: .75; }
    iframe { display: block; width: 100%; border: 0; border-radius: 6px; }
    ::slotted(pre), ::slotted(code) { display: block; overflow-x: auto; }
    ::slotted(script) { display: none; }
  `;

  /** The elements whose frames show something; the first one's has Python. */
  const family: PlaygroundElement[] = [];

  /** Give a frame a line to the Python of the first one. */
  function joinFirst(guest: PlaygroundElement): void {
    const { port1, port2 } = new MessageChannel();
    family[0]!.post({ mark: MARK, type: "host" }, port1);
    guest.post({ mark: MARK, type: "join" }, port2);
  }

  /** Forget a frame that is gone; if it had Python, the next one gets it. */
  function leave(element: PlaygroundElement): void {
    const at = family.indexOf(element);
    if (at < 0) return;
    family.splice(at, 1);
    if (at > 0 || !family.length) return;
    family[0]!.post({ mark: MARK, type: "inherit" });
    for (const guest of family.slice(1)) joinFirst(guest);
  }

  abstract class PlaygroundElement extends HTMLElement {
    static readonly observedAttributes = ["theme", "height"];
    frame: HTMLIFrameElement | null = null;
    private readonly root = this.attachShadow({ mode: "open" });
    private readonly bar = document.createElement("div");
    private wantsRun = false;
    private greeted = false;
    private readonly listen = (event: MessageEvent<FromFrame>): void => this.receive(event);

    connectedCallback(): void {
      if (this.root.childElementCount) return;
      const style = document.createElement("style");
      style.textContent = STYLE;
      const start = document.createElement("button");
      start.type = "button";
      start.textContent = this.label;
      start.dataset.testid = "embed-start";
      start.addEventListener("click", () => this.start(true));
      const note = document.createElement("p");
      note.textContent = "runs here, in your browser";
      this.bar.className = "bar";
      this.bar.append(start, note);
      this.root.append(style, document.createElement("slot"), this.bar);
      if (this.hasAttribute("autorun")) this.startWhenSeen();
    }

    disconnectedCallback(): void {
      removeEventListener("message", this.listen);
      leave(this);
      this.frame?.remove();
      this.frame = null;
      this.greeted = false;
      this.root.replaceChildren();
      this.bar.replaceChildren();
    }

    attributeChangedCallback(name: string): void {
      if (name === "height") this.setHeight(null);
      else if (this.greeted)
        this.post({ mark: MARK, type: "theme", theme: this.getAttribute("theme") });
    }

    /** Put the frame in the place of the static content; `run` runs the program at once. */
    start(run: boolean): void {
      if (this.frame) return;
      this.wantsRun = run;
      const frame = document.createElement("iframe");
      frame.dataset.testid = "embed-frame";
      frame.title = this.title || "mlcweb playground";
      // Where the page around is isolated, only an isolated frame may load; both are harmless else.
      frame.allow = "cross-origin-isolated; clipboard-write";
      frame.src = `${base}embed.html`;
      this.frame = frame;
      this.setHeight(360);
      addEventListener("message", this.listen);
      this.bar.replaceWith(frame);
      this.root.querySelector("slot")!.hidden = true;
    }

    protected abstract readonly label: string;
    protected abstract content():
      | Pick<FrameOptions, "cell" | "lesson">
      | Promise<Pick<FrameOptions, "cell" | "lesson">>;

    private startWhenSeen(): void {
      const observer = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        observer.disconnect();
        if (this.isConnected) this.start(true);
      });
      observer.observe(this);
    }

    private setHeight(content: number | null): void {
      if (!this.frame) return;
      const fixed = this.getAttribute("height");
      const height = fixed ?? content;
      if (height !== null)
        this.frame.style.height = /^\d+(\.\d+)?$/.test(String(height))
          ? `${height}px`
          : String(height);
    }

    private receive({ data, source, origin: from }: MessageEvent<FromFrame>): void {
      if (source !== this.frame?.contentWindow || from !== origin || data?.mark !== MARK) return;
      if (data.type === "resize") this.setHeight(data.height);
      else if (data.type === "ran")
        this.dispatchEvent(new CustomEvent("mlc-ran", { detail: { ok: data.ok }, bubbles: true }));
      else if (data.type === "hello" && !this.greeted) {
        this.greeted = true;
        void this.greet();
      }
    }

    private async greet(): Promise<void> {
      const { cell, lesson } = await this.content();
      family.push(this);
      if (family[0] !== this) joinFirst(this);
      const options: FrameOptions = {
        cell,
        lesson,
        panes: (this.getAttribute("panes") ?? "").split(/[\s,]+/).filter(Boolean),
        theme: this.getAttribute("theme"),
        run: this.wantsRun,
        fixedHeight: this.hasAttribute("height"),
      };
      this.post({ mark: MARK, type: "open", options });
    }

    post(message: ToFrame, port?: MessagePort): void {
      this.frame?.contentWindow?.postMessage(message, origin, port ? [port] : []);
    }
  }

  class CellElement extends PlaygroundElement {
    protected readonly label = "Run";

    /** The program: of `src`, else of a script in the element, else its text. */
    protected async content(): Promise<Pick<FrameOptions, "cell" | "lesson">> {
      const address = this.getAttribute("src");
      let text: string;
      if (address) {
        try {
          const response = await fetch(new URL(address, document.baseURI));
          if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
          text = await response.text();
        } catch (error) {
          text = `# ${address} could not be fetched: ${(error as Error).message}\n${this.ownText()}`;
        }
      } else text = this.ownText();
      const open = (address
        ?.split("/")
        .at(-1)
        ?.match(/^[A-Za-z_]\w*\.py$/) ?? ["lesson.py"])[0]!;
      return { cell: { files: [{ name: open, text }], open }, lesson: null };
    }

    private ownText(): string {
      const held = this.querySelector('script[type="text/x-python"], pre, code, textarea') ?? this;
      return dedent(held.textContent ?? "");
    }
  }

  class LessonElement extends PlaygroundElement {
    protected readonly label = "Open the lesson";

    protected content(): Pick<FrameOptions, "cell" | "lesson"> {
      return { cell: null, lesson: this.getAttribute("lesson") ?? this.getAttribute("src") ?? "" };
    }
  }

  /** Text without the indentation that it has from the page around it. */
  function dedent(text: string): string {
    const lines = text.replace(/^\s*\n|\s+$/g, "").split("\n");
    const depths = lines.filter((line) => line.trim()).map((line) => /^\s*/.exec(line)![0].length);
    const depth = Math.min(...depths, Infinity);
    return `${lines.map((line) => line.slice(Number.isFinite(depth) ? depth : 0)).join("\n")}\n`;
  }

  customElements.define("mlc-cell", CellElement);
  customElements.define("mlc-lesson", LessonElement);
})();
