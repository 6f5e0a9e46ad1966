/**
 * Notices when a step of the start-up makes no progress.
 *
 * It watches for the lack of progress, not for the time in all: a slow download may take as long as
 * it likes while parts of it arrive. A stall is reported, not punished: the step goes on, and the
 * complaint is withdrawn when there is progress again (a laptop has woken up, a network is back).
 */

/** Seconds without progress after which a step counts as stalled. */
const LIMIT_S = 60;

/** Steps that can be at work for longer without a sign of it. */
const OWN_LIMITS_S: Record<string, number> = {
  // Modules arrive without a word until the last byte is there.
  "Loading the page": 120,
  // Python is busy with imports, which takes long on a slow phone.
  "Loading mlcweb": 180,
  "Loading NumPy": 120,
};

export class StallWatch {
  /** What to tell the reader; null while there is progress, or nothing to wait for. */
  complaint: string | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `onChange` is called when there is something to complain of, and when there no longer is. */
  constructor(private readonly onChange: (complaint: string | null) => void) {}

  /** The step has begun, or has got on. */
  progress(step: string): void {
    this.stop();
    const seconds = OWN_LIMITS_S[step] ?? LIMIT_S;
    this.timer = setTimeout(
      () => this.tell(`${step}: no progress for ${seconds} s`),
      seconds * 1000,
    );
  }

  /** There is nothing to wait for any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.tell(null);
  }

  private tell(complaint: string | null): void {
    if (complaint === this.complaint) return;
    this.complaint = complaint;
    this.onChange(complaint);
  }
}
