/** Views that follow what runs in their page or frame. */

import { setLiveNames } from "../program/help/extensions";
import type { PythonSession } from "../python/client";
import type { RunResult } from "../python/wire";
import type { Activity } from "../shell/activity";
import type { View } from "./view";

/** Tell `views`, to which more may be added, when something runs and when Python starts anew. */
export function followActivity(
  views: readonly View[],
  session: PythonSession,
  activity: Activity,
): void {
  activity.onChange(() => {
    for (const view of views) view.onActivity?.();
  });
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
