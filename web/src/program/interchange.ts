/**
 * Programs as other tools keep them: Python files and Jupyter notebooks.
 *
 * Cells are parted by `# %%` lines, the percent format of Jupytext, Spyder and VS Code; text cells
 * are comments under `# %% [markdown]`.
 */

import { codeCell, notebookText, parseNotebook, sourceOf } from "../document/jupyter";

const MARKER = /^# %%(.*)$/;

/** A notebook's cells as one program. Throws an `Error` for the reader where there is no notebook. */
export function fromNotebook(text: string): string {
  const parts = parseNotebook(text)
    .cells.filter(({ cell_type }) => cell_type === "code" || cell_type === "markdown")
    .map((cell) => {
      const body = sourceOf(cell).trimEnd();
      if (cell.cell_type === "code") return `# %%\n${body}`;
      return `# %% [markdown]\n${body.replace(/^.*$/gm, (line) => (line ? `# ${line}` : "#"))}`;
    });
  return `${parts.join("\n\n")}\n`;
}

/** A program as a notebook, format 4.5; without `# %%` lines it is one cell. */
export function toNotebook(program: string): string {
  const cells: { type: "code" | "markdown"; lines: string[] }[] = [];
  for (const line of program.replace(/\n$/, "").split("\n")) {
    const marker = MARKER.exec(line);
    if (marker)
      cells.push({ type: marker[1]!.includes("[markdown]") ? "markdown" : "code", lines: [] });
    else {
      if (!cells.length) cells.push({ type: "code", lines: [] });
      cells.at(-1)!.lines.push(line);
    }
  }
  return notebookText(
    cells
      .filter(({ lines }) => lines.some((line) => line.trim()))
      .map(({ type, lines }, index) => {
        const cell = { id: `cell-${index + 1}`, metadata: {}, source: sourceLines(type, lines) };
        return type === "code" ? codeCell(cell) : { cell_type: type, ...cell };
      }),
  );
}

function sourceLines(type: "code" | "markdown", lines: string[]): string[] {
  const text = lines.join("\n").replace(/^\n+|\s+$/g, "");
  const body = type === "code" ? text : text.replace(/^# ?/gm, "");
  return body.split(/(?<=\n)/);
}

/** Hand a file to the reader. */
export function download(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
