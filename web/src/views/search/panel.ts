/** A part of the Search view that shows one aspect of a search, or of several. */

import type { Search } from "./search";

export interface SearchPanel {
  readonly id: string;
  readonly title: string;
  /** The search as it is now; asked for while the panel is in sight, and not for each trial. */
  template(search: Search | null, all: readonly Search[]): unknown;
}

/** Seconds of a trial as a number of milliseconds for axes and tables. */
export function ms(seconds: number): string {
  return String(Number((seconds * 1000).toPrecision(3)));
}
