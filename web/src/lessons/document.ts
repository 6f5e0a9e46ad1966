/** The lesson as a document of the page, beside the views. */

import type { DocumentMemory } from "../document/memory";
import { byId } from "../dom";
import type { PageDocument } from "../shell/document";
import { toast } from "../shell/toast";
import { load, store } from "../storage";
import { LESSONS } from "./catalogue";
import { addressOf } from "./navigation";
import { type LessonHost, LessonReader } from "./reader";

export class LessonDocument implements PageDocument {
  readonly id = "lesson";
  readonly panes = [{ id: "lesson", title: "Lesson", panel: byId("pane-lesson") }];
  private readonly reader: LessonReader;
  private readonly link = byId<HTMLAnchorElement>("to-lessons");

  constructor(host: LessonHost) {
    this.reader = new LessonReader(byId("pane-lesson"), host);
    this.pointTo(load("lesson") ?? "");
  }

  memory(): Promise<DocumentMemory | null> {
    return Promise.resolve(this.reader.memory);
  }

  get running(): boolean {
    return this.reader.running;
  }

  shown(): void {
    this.reader.scrollBack();
  }

  run(): void {
    if (this.reader.id === null) toast("Open a lesson: Run runs its cells one after the other");
    else this.reader.run();
  }

  /** Show a lesson; the list of all where `id` names none. */
  async open(id: string): Promise<void> {
    await this.reader.open(id);
    store("lesson", this.reader.id);
    this.pointTo(this.reader.id ?? "");
    const title = LESSONS.find((entry) => entry.id === this.reader.id)?.title;
    document.title = title ? `${title} · mlcweb` : "Lessons · mlcweb";
  }

  /** Let the page's switch lead to the lesson that was read last. */
  private pointTo(id: string): void {
    this.link.href = LESSONS.some((entry) => entry.id === id) ? addressOf(id) : "#lesson";
  }
}
