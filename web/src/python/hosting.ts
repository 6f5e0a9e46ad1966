/** One Python for several frames of this origin on a page: the owner's side, and the guests' side. */

import { type Guest, type PythonSession, Stopped } from "./client";
import type { Connect } from "./connection";
import type { FromWorker, ToWorker } from "./messages";

/** Let the frame at the other end of `port` use this page's Python. */
export function host(session: PythonSession, port: MessagePort): void {
  const post = (message: FromWorker): void => port.postMessage(message);
  const guest: Guest = {
    output: (chunks, size) => post({ type: "output", chunks, size }),
  };
  const tell = (): void => {
    if (session.state === "ready" && session.runtime) {
      post({ type: "ready", runtime: session.runtime });
      post({ type: "loaded" });
    } else if (session.state === "failed") post({ type: "failed", message: session.failure });
    else post({ type: "progress", stage: session.progress[0], fraction: session.progress[1] });
  };
  session.on("state", tell);
  session.on("progress", tell);
  session.on("restarted", (reason) => post({ type: "restarted", reason }));
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => {
    if (data.type === "join") tell();
    else if (data.type === "seen") session.seen(data.size);
    else if (data.type === "stop") void session.stopFor(guest);
    else if (data.type === "makeWay") session.makeWay(guest);
    else if (data.type === "end") session.restart("Another part of this page restarted Python.");
    else if (data.type === "call") {
      const { id, name, args, look } = data;
      session.make(name, args, { guest, look }).then(
        (value) => post({ type: "answer", id, value }),
        (error: Error) =>
          post({ type: "refusal", id, message: error.message, stopped: error instanceof Stopped }),
      );
    }
  };
}

/** Use the Python of the frame at the other end of `port`. */
export function connectTo(port: MessagePort): Connect {
  return (receiver, _base, trials) => {
    trials.close();
    port.onmessage = ({ data }: MessageEvent<unknown>) => receiver.receive(data);
    const post = (message: ToWorker): void => port.postMessage(message);
    post({ type: "join" });
    return {
      post,
      // Its owner waits, and then ends Python itself.
      grace: 5000,
      own: false,
      seen: (size) => post({ type: "seen", size }),
      allow: () => undefined,
      interrupt: () => {
        post({ type: "stop" });
        return true;
      },
      makeWay: (looking) => {
        post({ type: "makeWay" });
        return looking;
      },
      end: () => post({ type: "end" }),
    };
  };
}
