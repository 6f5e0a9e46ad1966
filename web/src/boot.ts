/** Entry of the page: Python begins to load before the editor's code has arrived. */

import { registerOffline } from "./offline/register";
import { PythonSession } from "./python/client";

const session = new PythonSession(new URL(".", document.baseURI).href);
session.launch();
if (import.meta.env.PROD) registerOffline(session);
void import("./main").then(({ startPage }) => {
  // In a task of its own, since evaluating the code was a long one already.
  setTimeout(() => startPage(session));
});
