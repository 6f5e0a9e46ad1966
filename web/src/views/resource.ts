/** What a view asks Python for, and how the answer stands. */

import { batch, computed, effect, signal, untracked } from "@preact/signals-core";
import { message } from "../errors";
import { Stopped } from "../python/client";

export type ResourceState = "empty" | "loading" | "ready" | "stale" | "error";

/**
 * An answer that takes time. Of several questions the last one counts.
 *
 * "stale" has the answer before while the next is on its way, "error" too, if there was one.
 */
export class Resource<T> {
  private readonly current = signal<{ state: ResourceState; value: T | null; error: unknown }>({
    state: "empty",
    value: null,
    error: null,
  });
  private asking = new AbortController();
  private readonly answer = computed(() => this.current.value.value);

  get state(): ResourceState {
    return this.current.value.state;
  }

  /** Who reads it follows the answers alone, whatever the state. */
  get value(): T | null {
    return this.answer.value;
  }

  /** For the reader; empty where nothing failed. */
  get error(): string {
    return this.state === "error" ? message(this.current.value.error) : "";
  }

  /** Whether the reader, or the end of Python, stopped it. */
  get stopped(): boolean {
    const { error } = this.current.value;
    return error instanceof Stopped || (this.state === "error" && message(error) === "stopped");
  }

  get busy(): boolean {
    return this.state === "loading" || this.state === "stale";
  }

  /**
   * Whether an answer has come, and nothing has been asked since: `value`, asked again, is it. The
   * signal that `ask` gets says when nobody waits any more.
   */
  async load(
    ask: (signal: AbortSignal) => Promise<T>,
    take?: (value: T) => void,
  ): Promise<boolean> {
    const { signal } = this.renew();
    const { value } = this.current.peek();
    this.current.value = { state: value === null ? "loading" : "stale", value, error: null };
    try {
      const answer = await ask(signal);
      if (signal.aborted) return false;
      batch(() => {
        this.set(answer);
        take?.(answer);
      });
      return true;
    } catch (error) {
      if (!signal.aborted)
        this.current.value = { state: "error", value: this.current.peek().value, error };
      return false;
    }
  }

  /** Ask whenever a signal changes that `question` reads; null where there is nothing to ask. */
  follow(question: () => ((signal: AbortSignal) => Promise<T>) | null): void {
    effect(() => {
      const ask = question();
      untracked(() => (ask ? void this.load(ask) : this.set(null)));
    });
  }

  /** Take `value` for the answer, or nothing at all; what was asked before counts no more. */
  set(value: T | null): void {
    this.renew();
    this.current.value = { state: value === null ? "empty" : "ready", value, error: null };
  }

  /** Wait for no answer any more; the one before stays. */
  cancel(): void {
    this.set(this.answer.peek());
  }

  /** From now on what was asked before counts no more. */
  private renew(): AbortController {
    this.asking.abort();
    this.asking = new AbortController();
    return this.asking;
  }
}

/** Answers by key, each asked for once; one that failed is asked for again. */
export class Cache<T> {
  private readonly answers = new Map<string, Promise<T>>();

  get(key: string, ask: () => Promise<T>): Promise<T> {
    const answer = this.answers.get(key) ?? ask();
    this.answers.set(key, answer);
    answer.catch(() => this.answers.delete(key));
    return answer;
  }

  has(key: string): boolean {
    return this.answers.has(key);
  }

  /** Forget the answers to keys that begin so. */
  clear(prefix = ""): void {
    for (const key of this.answers.keys()) if (key.startsWith(prefix)) this.answers.delete(key);
  }
}
