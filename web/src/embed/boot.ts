/** Entry of the frame: greets the page around it, and starts when that says what to show. */

import { PythonSession } from "../python/client";
import { startWorker } from "../python/connection";
import { connectTo, host } from "../python/hosting";
import { hashParts } from "../share/address";
import { startCode } from "../shell/page_start";
import { mayStart } from "./embedders";
import { type FrameOptions, type FromFrame, MARK, type ToFrame } from "./messages";

/** Milliseconds between two greetings, until the page around answers. */
const GREETING = 100;
/** Milliseconds after which a frame with a program in its own address waits no more. */
const PATIENCE = 300;

const base = new URL(".", document.baseURI).href;
const code = hashParts(location.hash).get("code") ?? null;
const say = (message: FromFrame): void => {
  if (parent !== window) parent.postMessage(message, "*");
};

let session: PythonSession | null = null;
let started = false;
let theme: ((theme: string | null) => void) | null = null;
const waitingGuests: MessagePort[] = [];

const begin = (options: FrameOptions, port: MessagePort | null, origin: string | null): void => {
  if (started) return;
  started = true;
  clearInterval(greeting);
  session = port ? new PythonSession(base, connectTo(port)) : new PythonSession(base);
  session.launch();
  for (const guest of waitingGuests) host(session, guest);
  const now = session;
  startCode(async () => {
    const { startFrame } = await import("./frame");
    const run = options.run && (await mayStart(origin, base));
    theme = await startFrame(now, { ...options, run }, code, say);
  });
};

let line: MessagePort | null = null;
addEventListener("message", ({ data, source, ports, origin }: MessageEvent<ToFrame>) => {
  if (source !== parent || data?.mark !== MARK) return;
  if (data.type === "open") begin(data.options, line, origin);
  else if (data.type === "theme") theme?.(data.theme);
  else if (data.type === "inherit") session?.reconnect(startWorker);
  else if (data.type === "join" && ports[0]) {
    if (session) session.reconnect(connectTo(ports[0]));
    else line = ports[0];
  } else if (data.type === "host" && ports[0]) {
    if (session) host(session, ports[0]);
    else waitingGuests.push(ports[0]);
  }
});

const greeting = setInterval(() => say({ mark: MARK, type: "hello" }), GREETING);
say({ mark: MARK, type: "hello" });
// A frame that a page holds by itself, as "Copy frame" gives it, has nobody to answer.
if (code !== null) {
  setTimeout(
    () =>
      begin(
        { cell: null, lesson: null, panes: [], theme: null, run: false, fixedHeight: true },
        null,
        null,
      ),
    PATIENCE,
  );
}
