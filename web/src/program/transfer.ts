/** Files in and out of the page: choosing, dropping, downloading. */

import { parseNotebook } from "../document/jupyter";
import { element } from "../dom";
import { message } from "../errors";
import type { ProgramFile } from "../python/wire";
import { isNotebook } from "./files";
import { fromNotebook, download as save, toNotebook } from "./interchange";

/** Longest file that is read, in bytes; a program is shorter, and so is a notebook with pictures. */
const LIMIT = 8_000_000;

/** What the reader chose, as programs; `onProblem` hears of what is none. */
export async function readFiles(
  chosen: Iterable<File>,
  onProblem: (text: string) => void,
): Promise<ProgramFile[]> {
  const programs: ProgramFile[] = [];
  for (const file of chosen) {
    try {
      if (file.size > LIMIT) throw new Error("It is longer than 8 MB.");
      const text = await file.text();
      if (text.includes("\0")) throw new Error("Not a text file.");
      if (isNotebook(file.name)) parseNotebook(text);
      programs.push({ name: file.name, text });
    } catch (error) {
      onProblem(`${file.name} was not opened: ${message(error)}`);
    }
  }
  return programs;
}

/** Let the reader choose files. */
export function chooseFiles(onFiles: (files: File[]) => void): void {
  const input = element("input", {
    type: "file",
    multiple: true,
    accept: ".py,.ipynb,.txt,text/x-python",
  });
  input.addEventListener("change", () => onFiles([...(input.files ?? [])]));
  input.click();
}

/** Files dropped anywhere on `area` are handed over, but for areas inside of it that take files
 * themselves; the area shows that it takes them. */
export function acceptDrops(area: HTMLElement, onFiles: (files: File[]) => void): void {
  area.dataset.drops = "";
  const takes = ({ dataTransfer, target }: DragEvent): boolean =>
    (dataTransfer?.types.includes("Files") ?? false) &&
    (target as Element).closest("[data-drops]") === area;
  // In the capture phase: the editor would insert a file's text where it is dropped.
  area.addEventListener(
    "dragover",
    (event) => {
      area.classList.toggle("takes-drop", takes(event));
      if (takes(event)) event.preventDefault();
    },
    true,
  );
  area.addEventListener("dragleave", (event) => {
    if (!area.contains(event.relatedTarget as Node | null)) area.classList.remove("takes-drop");
  });
  area.addEventListener(
    "drop",
    (event) => {
      if (!takes(event)) return;
      event.preventDefault();
      event.stopPropagation();
      area.classList.remove("takes-drop");
      onFiles([...(event.dataTransfer?.files ?? [])]);
    },
    true,
  );
}

export function download(name: string, text: string): void {
  save(name, text, isNotebook(name) ? "application/x-ipynb+json" : "text/x-python");
}

/** Hand out a notebook as a program, its cells under `# %%` lines, or a program as a notebook. */
export function downloadOther({ name, text }: ProgramFile): void {
  if (isNotebook(name)) download(name.replace(/\.ipynb$/, ".py"), fromNotebook(text));
  else download(name.replace(/\.py$/, ".ipynb"), toNotebook(text));
}
