/** The files of a program: a small list of names and texts, one of which is open. */

import type { ProgramFile } from "../python/wire";

export interface ProgramFiles {
  files: ProgramFile[];
  /** Name of the file in the editor. */
  open: string;
}

/** Names that Python can import, and those of notebooks. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*\.(py|ipynb)$/;

/** Why a file cannot have this name; null if it can. */
export function refusal(name: string, { files }: ProgramFiles, except?: string): string | null {
  if (!NAME.test(name)) return "A name is letters, digits and underscores, then .py";
  if (except !== undefined && isNotebook(name) !== isNotebook(except))
    return "A notebook stays .ipynb, and a program .py";
  if (files.some((file) => file.name === name && name !== except))
    return `There is a ${name} already`;
  return null;
}

/** `wish`, made into a name that Python can import and that no file has. */
export function freeName(wish: string, { files }: ProgramFiles): string {
  const stem = wish
    .replace(/\.(py|ipynb|txt)$/i, "")
    .replace(/[^A-Za-z0-9_]+/g, "_")
    .replace(/^(?=\d|$)/, "_");
  const ending = isNotebook(wish) ? "ipynb" : "py";
  const taken = new Set(files.map(({ name }) => name));
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? `${stem}.${ending}` : `${stem}_${number}.${ending}`;
    if (!taken.has(name)) return name;
  }
}

export function isNotebook(name: string): boolean {
  return /\.ipynb$/i.test(name);
}

export function textOf({ files, open }: ProgramFiles): string {
  return files.find(({ name }) => name === open)?.text ?? "";
}

export function withText(all: ProgramFiles, name: string, text: string): ProgramFiles {
  return { ...all, files: all.files.map((file) => (file.name === name ? { name, text } : file)) };
}

/** With one more file, open. */
export function withFile(all: ProgramFiles, file: ProgramFile): ProgramFiles {
  return { files: [...all.files, file], open: file.name };
}

/** Without a file; its neighbour is open then. The last file stays. */
export function withoutFile(all: ProgramFiles, name: string): ProgramFiles {
  const at = all.files.findIndex((file) => file.name === name);
  if (at < 0 || all.files.length === 1) return all;
  const files = all.files.filter((file) => file.name !== name);
  return { files, open: all.open === name ? files[Math.max(0, at - 1)]!.name : all.open };
}

export function renamed(all: ProgramFiles, from: string, to: string): ProgramFiles {
  return {
    files: all.files.map((file) => (file.name === from ? { ...file, name: to } : file)),
    open: all.open === from ? to : all.open,
  };
}

/**
 * `ours`, and beside it what another tab has made of the files since both had those of `base`; with
 * the names of files that both have changed, and what theirs are called now.
 */
export function merged(
  base: ProgramFiles,
  ours: ProgramFiles,
  theirs: ProgramFiles,
): { files: ProgramFiles; renamed: [name: string, now: string][] } {
  const text = (all: ProgramFiles, name: string): string | undefined =>
    all.files.find((file) => file.name === name)?.text;
  const texts = new Set([...base.files, ...ours.files].map((file) => file.text));
  const renamed: [string, string][] = [];
  let files = ours;
  for (const file of theirs.files) {
    if (texts.has(file.text)) continue;
    const { name } = file;
    const own = text(ours, name);
    if (own === undefined) files = { ...withFile(files, file), open: ours.open };
    else if (own === text(base, name)) files = withText(files, name, file.text);
    else {
      const now = freeName(name, files);
      files = { ...withFile(files, { name: now, text: file.text }), open: ours.open };
      renamed.push([name, now]);
    }
  }
  return { files, renamed };
}

/** The files that a stored text holds; null where it holds none. */
export function parseFiles(stored: string | null): ProgramFiles | null {
  try {
    const { files, open } = JSON.parse(stored ?? "null") as ProgramFiles;
    const whole =
      files.length > 0 &&
      files.every(({ name, text }) => NAME.test(name) && typeof text === "string");
    if (!whole) return null;
    return { files, open: files.some(({ name }) => name === open) ? open : files[0]!.name };
  } catch {
    return null;
  }
}
