/** The calls that wait for one Python: what the reader asks comes before what views look up. */

export interface Waiting {
  /** Whether a view asks, to show something: it can be interrupted, and asked again. */
  readonly look: boolean;
}

export class CallQueue<Call extends Waiting> {
  /** What Python has. */
  sent: Call | null = null;
  private waiting: Call[] = [];

  get empty(): boolean {
    return this.sent === null && this.waiting.length === 0;
  }

  get all(): Call[] {
    return this.sent ? [this.sent, ...this.waiting] : [...this.waiting];
  }

  add(call: Call): void {
    this.waiting.push(call);
  }

  /** The next call for Python, a look where `looks` may be; null while it has one, or none waits. */
  next(looks: boolean): Call | null {
    if (this.sent) return null;
    const asked = this.waiting.find(({ look }) => !look);
    this.sent = asked ?? (looks ? this.waiting[0] : null) ?? null;
    if (this.sent) this.remove(this.sent);
    return this.sent;
  }

  /** Python is done with what it had; `again` puts that in front of its kind. */
  done(again = false): void {
    if (this.sent && again) this.waiting.unshift(this.sent);
    this.sent = null;
  }

  /** Take out a call that waits; whether there was one. */
  remove(call: Call): boolean {
    const at = this.waiting.indexOf(call);
    if (at >= 0) this.waiting.splice(at, 1);
    return at >= 0;
  }

  /** Empty the queue; returns what was in it. */
  clear(): Call[] {
    const { all } = this;
    this.waiting = [];
    this.sent = null;
    return all;
  }
}
