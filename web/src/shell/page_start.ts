/** Starts the page's code, and says so where that fails or hangs. */

import { byId } from "../dom";
import { message } from "../errors";
import { StallWatch } from "../python/stall";
import { showStartNotice } from "./start_notice";

/** `start` loads the code and runs it. */
export function startCode(start: () => Promise<void>): void {
  const reload = (): void => location.reload();
  const watch = new StallWatch((complaint) => showStartNotice(complaint, reload));
  watch.progress("Loading the page");
  start().then(
    () => watch.stop(),
    (error: unknown) => {
      watch.stop();
      const status = byId("status");
      status.dataset.state = "error";
      byId("status-text").textContent = "The page did not start";
      showStartNotice(`The page did not start: ${message(error)}`, reload);
      // For whoever looks into the browser's console.
      throw error;
    },
  );
}
