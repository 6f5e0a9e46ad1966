/** Trace: the schedule instructions of the program, and the module after each of them. */

import { Stopped } from "../../python/client";
import type { ShownTrace, TraceStep } from "../../python/protocol";
import { chooser, emptyNote, viewPanel } from "../parts";
import { StepList } from "./steps";
import type { View, ViewContext } from "../view";

export function traceView({ session }: ViewContext): View {
  const panel = viewPanel("trace", "Trace");
  panel.classList.add("view-filled");
  const list = new StepList({ ids: { step: "trace-step", module: "trace-module" } });
  const nothing = emptyNote(
    "No trace yet",
    "Run a program that schedules something. Each schedule instruction becomes a step; the module after it is shown beside.",
  );
  panel.append(nothing);

  /** The replay of each trace, asked for once, and kept when Python is gone. */
  const replays = new Map<string, Promise<TraceStep[]>>();
  let traces: ShownTrace[] = [];
  let shown: string | null = null;

  const replay = (id: string): Promise<TraceStep[]> => {
    const known = replays.get(id);
    if (known) return known;
    const steps = session.call("trace_view.trace_steps", id);
    replays.set(id, steps);
    steps.catch(() => replays.delete(id));
    return steps;
  };

  const show = async (id: string): Promise<void> => {
    const trace = traces.find((each) => each.id === id);
    if (!trace) return;
    shown = id;
    try {
      const steps = await replay(id);
      if (shown !== id) return;
      const titles = traces.map((each) => ({ id: each.id, title: each.title }));
      const head = chooser("Schedule", titles, id, (next) => void show(next));
      panel.replaceChildren(head, list.root);
      list.show(trace, steps);
    } catch (error) {
      if (shown !== id || error instanceof Stopped) return;
      const reason = error instanceof Error ? error.message : String(error);
      panel.replaceChildren(emptyNote("The trace cannot be replayed", reason));
    }
  };

  return {
    id: "trace",
    title: "Trace",
    panel,
    onResult(result) {
      if (!result.traces.length) {
        if (result.ok) {
          shown = null;
          panel.replaceChildren(nothing);
        }
        return;
      }
      traces = result.traces;
      replays.clear();
      void show(traces.at(-1)!.id);
    },
  };
}
