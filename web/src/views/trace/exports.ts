/** Taking a trace along: as Python, as a record in TVM's layout, as a link. */

import { download } from "../../program/interchange";
import type { PythonSession } from "../../python/client";
import type { Changes, ShownTrace, StepOutcome } from "../../python/wire";
import type { MenuItem } from "../../shell/menu";
import { copyAndTell } from "../kit";
import { message } from "../resource";

interface Exported {
  trace: ShownTrace;
  changes: Changes;
  derived: { steps: unknown[] };
}

/** What can be made of a trace. `times` are those of its steps. */
export function exportItems(
  session: PythonSession,
  { trace, changes, derived }: Exported,
  times: ReadonlyMap<number, StepOutcome>,
  toast: (message: string) => void,
): MenuItem[] {
  const name = trace.title.replace(/\W+/g, "_").replace(/^_|_$/g, "") || "trace";
  const python = (): Promise<string> => session.call("trace_export.python", trace.id, changes);
  const record = async (): Promise<string> => {
    const seconds = times.get(derived.steps.length - 1)?.repeats ?? null;
    return `${JSON.stringify(await session.call("trace_export.record", trace.id, changes, seconds), null, 1)}\n`;
  };
  const take = (make: () => Promise<string>, use: (text: string) => unknown) => (): void => {
    make()
      .then(use)
      .catch((error: unknown) => toast(message(error)));
  };
  const copy = (text: string): Promise<void> => copyAndTell(text, toast);
  return [
    { label: "Copy as Python", testId: "trace-copy-python", run: take(python, copy) },
    {
      label: "Download as Python",
      testId: "trace-save-python",
      run: take(python, (text) => download(`${name}.py`, text, "text/x-python")),
    },
    { label: "Copy as TVM’s JSON record", testId: "trace-copy-json", run: take(record, copy) },
    {
      label: "Download as TVM’s JSON record",
      testId: "trace-save-json",
      run: take(record, (text) => download(`${name}.json`, text, "application/json")),
    },
    {
      label: "Link to this trace and step",
      testId: "trace-link",
      run: () => document.getElementById("share")?.click(),
    },
  ];
}
