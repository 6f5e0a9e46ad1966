/** A part of the Search view that shows one aspect of a search, or of several. */

import type { Search } from "./search";

export interface SearchPanel {
  readonly id: string;
  readonly title: string;
  readonly root: HTMLElement;
  /** Show a search as it is now. Only called while the panel is in sight, and not for each trial. */
  show(search: Search | null, all: readonly Search[]): void;
}

/** Seconds of a trial as a number of milliseconds for axes and tables. */
export function ms(seconds: number): string {
  return String(Number((seconds * 1000).toPrecision(3)));
}
