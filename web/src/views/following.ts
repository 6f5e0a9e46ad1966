/** Views that follow what runs in their page or frame. */

import { setLiveNames } from "../program/help/extensions";
import type { PythonSession } from "../python/client";
import type { RunResult } from "../python/wire";
import type { View } from "./view";

/** Tell `views`, to which more may be added, when Python starts anew. */
export function followRestarts(views: readonly View[], session: PythonSession): void {
  session.on("restarted", () => {
    for (const view of views) view.onRestart?.();
  });
}

/** Hand what a program has left behind to the views, and its names to the editor. */
export function showResult(
  views: readonly View[],
  session: PythonSession,
  result: RunResult,
): void {
  for (const view of views) view.onResult?.(result);
  session.look(null, "completion.live", result.document).then(setLiveNames, () => undefined);
}
