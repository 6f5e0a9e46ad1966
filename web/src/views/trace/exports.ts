/** Taking a trace along: as Python, as a record in TVM's layout, as a link. */

import { message } from "../../errors";
import { download } from "../../program/interchange";
import type { PythonSession } from "../../python/client";
import type { Changes, StepOutcome, Titled } from "../../python/wire";
import type { MenuItem } from "../../shell/menu";
import { copyAndTell } from "../kit";

interface Exported {
  trace: Titled;
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
    const record = await session.call("trace_export.record", trace.id, changes, seconds);
    return `${JSON.stringify(record, null, 1)}\n`;
  };
  const formats = [
    { id: "python", label: "Python", file: `${name}.py`, type: "text/x-python", make: python },
    {
      id: "json",
      label: "TVM’s JSON record",
      file: `${name}.json`,
      type: "application/json",
      make: record,
    },
  ];
  const item = (testId: string, label: string, run: () => Promise<unknown>): MenuItem => ({
    label,
    testId,
    run: () => void run().catch((error: unknown) => toast(message(error))),
  });
  return [
    ...formats.flatMap(({ id, label, file, type, make }) => [
      item(`trace-copy-${id}`, `Copy as ${label}`, async () => copyAndTell(await make(), toast)),
      item(`trace-save-${id}`, `Download as ${label}`, async () =>
        download(file, await make(), type),
      ),
    ]),
    {
      label: "Link to this trace and step",
      testId: "trace-link",
      run: () => document.getElementById("share")?.click(),
    },
  ];
}
