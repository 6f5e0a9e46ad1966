/**
 * Which files are in the editor, and where they are kept: the reader's own, or those of a link.
 *
 * A link never replaces the reader's own files. What is changed in a link's files is kept beside
 * them, under the link, until the reader keeps them or goes back.
 */

import { load, store } from "../storage";
import { freeName, merged, type ProgramFiles, parseFiles, withFile } from "./files";

const OWN = "files";
const SHARED = "shared";

export class Workspace {
  files: ProgramFiles;
  /** Names the link whose files are shown; null while they are the reader's own. */
  link: string | null = null;
  private own: ProgramFiles;
  /** The reader's own files when they were last read or stored, and what was stored then. */
  private base: ProgramFiles;
  private stored: string | null;

  constructor(initial: ProgramFiles) {
    const before = load("program");
    this.own =
      parseFiles(load(OWN)) ??
      (before ? { files: [{ name: initial.open, text: before }], open: initial.open } : initial);
    this.files = this.own;
    this.base = this.own;
    this.stored = load(OWN);
  }

  /** Show the files of a link, with what the reader has changed in them since. */
  openLink(link: string, files: ProgramFiles): void {
    if (same(files, this.own)) {
      this.link = null;
      this.change({ ...this.own, open: files.open });
      return;
    }
    const stored = load(SHARED);
    const separator = stored?.indexOf("\n") ?? -1;
    const changed =
      stored?.slice(0, separator) === link ? parseFiles(stored.slice(separator + 1)) : null;
    this.link = link;
    this.files = changed ?? files;
  }

  change(files: ProgramFiles): void {
    this.files = files;
    if (this.link === null) this.own = files;
  }

  /**
   * Store what has changed; false where the browser does not keep it. `onMerged` hears of files
   * that another tab has changed, too, since this one read or stored them: both are kept.
   */
  save(onMerged: (renamed: [name: string, now: string][]) => void = () => undefined): boolean {
    if (this.link !== null) return store(SHARED, `${this.link}\n${JSON.stringify(this.files)}`);
    if (JSON.stringify(this.own) === this.stored) return true;
    const stored = load(OWN);
    const theirs = stored === this.stored ? null : parseFiles(stored);
    if (theirs) {
      const { files, renamed } = merged(this.base, this.own, theirs);
      this.change(files);
      if (renamed.length) onMerged(renamed);
    }
    const text = JSON.stringify(this.own);
    const done = store(OWN, text);
    if (done) {
      this.stored = text;
      this.base = this.own;
    }
    return done;
  }

  /** Make the link's files the reader's own, beside those that are there. */
  keep(): void {
    let own = this.own;
    for (const { name, text } of this.files.files) {
      const same = own.files.find((file) => file.text === text);
      own = same ? { ...own, open: same.name } : withFile(own, { name: freeName(name, own), text });
    }
    this.leave(own);
  }

  /** Go back to the reader's own files. */
  back(): void {
    this.leave(this.own);
  }

  private leave(own: ProgramFiles): void {
    this.link = null;
    this.change(own);
    store(SHARED, null);
    this.save();
  }
}

/** Whether both are the same files, whichever is open. */
function same(one: ProgramFiles, other: ProgramFiles): boolean {
  const all = ({ files }: ProgramFiles): string =>
    JSON.stringify(files.map(({ name, text }) => [name, text]));
  return all(one) === all(other);
}
