/** What fills the left half of the page: the program, or a lesson. */

import type { DocumentMemory } from "../document/memory";

export interface PageDocument {
  /** Names it in `data-document` of the page's body; its element is `document-<id>`. */
  readonly id: string;
  /** Its panes; on a phone each has a tab beside the views. */
  readonly panes: { id: string; title: string; panel: HTMLElement }[];
  /** Whether its code runs, or waits to. */
  readonly running: boolean;
  /** What is kept of it beside its text; null where it is nothing that runs. */
  memory(): Promise<DocumentMemory | null>;
  /** It has come into sight. */
  shown?(): void;
  /** What the Run button does while this document is open. */
  run(): void;
}
