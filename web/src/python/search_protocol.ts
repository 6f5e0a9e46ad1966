/** What the Search view and `mlcweb.playground.search` say to each other. */

import type { TrialResult } from "./wire";

export type * from "./wire";

/** A trial with all that was told of it. */
export interface Trial extends TrialResult {
  decisions: string[];
  space: number;
}
