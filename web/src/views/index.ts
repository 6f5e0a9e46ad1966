/** The views of the page, in the order of their tabs. A new view is one file and one line here. */

import type { Activity } from "../shell/activity";
import { toast } from "../shell/toast";
import { accessView } from "./access/view";
import { codeView } from "./code/view";
import { gpuView } from "./gpu/view";
import { searchView } from "./search/view";
import { tensorIRView } from "./tensorir";
import { traceView } from "./trace/view";
import type { View, ViewContext, ViewFactory } from "./view";

const FACTORIES: ViewFactory[] = [
  tensorIRView,
  traceView,
  codeView,
  accessView,
  gpuView,
  searchView,
];

/** Make all views, and tell them when Python starts anew. */
export function makeViews(
  activity: Activity,
  page: Pick<ViewContext, "session" | "editor" | "show">,
): View[] {
  const context: ViewContext = {
    ...page,
    during: (what, stop, work) => activity.during(what, stop, work, true),
    looking: (what, stop, work) => activity.looking(what, stop, work),
    busy: activity.busy,
    toast,
  };
  const views = FACTORIES.map((create) => create(context));
  page.session.on("restarted", () => {
    for (const view of views) view.onRestart?.();
  });
  return views;
}
