/** What views show of what runs in their page or frame. */

import { setLiveNames } from "../program/help/extensions";
import type { PythonSession } from "../python/client";
import type { RunResult } from "../python/wire";
import type { View } from "./view";

/** Hand what a program has left behind to the views, and its names to the editor. */
export function showResult(
  views: readonly View[],
  session: PythonSession,
  result: RunResult,
): void {
  for (const view of views) view.onResult?.(result);
  session.look(null, "completion.live", result.document).then(setLiveNames, () => undefined);
}
