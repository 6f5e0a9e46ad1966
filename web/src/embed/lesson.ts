/** A lesson in a frame. */

import { element } from "../dom";
import { LessonReader } from "../lessons/reader";
import { hashParts } from "../share/address";
import { encode } from "../share/state";
import type { FrameContent, FrameHost } from "./frame";

export async function lessonContent(
  { session, runner }: FrameHost,
  id: string,
): Promise<FrameContent> {
  const root = element("div", { class: "pane-lesson embed-lesson" });
  const reader = new LessonReader(root, {
    runner,
    session,
    show: null,
    showModule: null,
    openProgram: (name, text) => {
      void encode({ version: 1, files: [{ name, text }], open: name }).then((code) => {
        window.open(`./#code=${code}`, "_blank", "noopener");
      });
    },
  });
  await reader.open(id);
  addEventListener("hashchange", () => {
    const asked = hashParts(location.hash).get("lesson");
    if (asked !== undefined) void reader.open(asked);
  });
  return {
    root,
    editor: null,
    get running() {
      return reader.running;
    },
    run: () => reader.run(),
    shared: () => `lesson=${reader.id ?? ""}`,
  };
}
