/** Shows, with Stop, that Python is blocked although nothing was asked: a callback of an earlier program. */

import type { PythonSession } from "../python/client";
import type { Activity } from "./activity";

/** Milliseconds between two questions whether Python's thread is free. */
const INTERVAL = 2000;
/** Milliseconds without an answer after which it counts as blocked. */
const PATIENCE = 2000;

export function watchLeftovers(session: PythonSession, activity: Activity): void {
  let asking = false;
  const ask = async (): Promise<void> => {
    const answered = session.ping();
    const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), PATIENCE));
    if ((await Promise.race([answered, late])) !== "late" || session.busy) return;
    const stop = (): void => void session.stopLeftover();
    await activity.looking("A callback of a program keeps Python busy", stop, () => answered);
  };
  setInterval(() => {
    if (asking || document.hidden || !session.idle) return;
    asking = true;
    void ask().finally(() => {
      asking = false;
    });
  }, INTERVAL);
}
