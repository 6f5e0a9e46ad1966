/** Entry of the page: Python begins to load before the editor's code has arrived. */

import { registerOffline } from "./offline/register";
import { PythonSession } from "./python/client";
import { startCode } from "./shell/page_start";

const session = new PythonSession(new URL(".", document.baseURI).href);
session.launch();
if (import.meta.env.PROD) registerOffline(session);
startCode(async () => {
  const { startPage } = await import("./main");
  // In a task of its own, since evaluating the code was a long one already.
  await new Promise((resolve) => setTimeout(resolve));
  startPage(session);
});
