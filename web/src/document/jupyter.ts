/** Jupyter notebooks, format 4: their cells, and outputs that become runs and come back from them. */

import type { OutputChunk } from "../python/messages";
import type { RunRecord } from "./record";

export interface NotebookCell {
  cell_type: string;
  /** Unique in the notebook. */
  id: string;
  metadata?: unknown;
  source: string | string[];
  /** Pictures that the cell's text names, by name and type. */
  attachments?: unknown;
  outputs?: NotebookOutput[];
  execution_count?: number | null;
}

export interface Notebook {
  cells: NotebookCell[];
  metadata?: unknown;
  nbformat: number;
  nbformat_minor: number;
}

interface NotebookOutput {
  output_type: string;
  name?: string;
  text?: string | string[];
  data?: Partial<Record<(typeof SHOWN)[number], string | string[]>>;
  ename?: string;
  evalue?: string;
  traceback?: string[];
}

const PNG = "data:image/png;base64,";
/** What is shown of an output, the first that it has; it may have other forms, of any type. */
const SHOWN = [
  "image/png",
  "image/jpeg",
  "image/svg+xml",
  "text/html",
  "text/markdown",
  "text/plain",
] as const;
/** Characters of a traceback that are shown. */
const MAX_TRACEBACK = 20_000;
/** Colours of a terminal. */
const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

/** Throws an `Error` for the reader where a text is no notebook. */
export function parseNotebook(text: string): Notebook {
  const notebook = parsed(text);
  if (Array.isArray(notebook?.worksheets))
    throw new Error(
      "A Jupyter notebook of version 3; `jupyter nbconvert --to notebook` makes one of version 4.",
    );
  if (!Array.isArray(notebook?.cells)) throw new Error("Not a Jupyter notebook (version 4).");
  return {
    ...(notebook as Omit<Notebook, "cells">),
    cells: withIds(notebook.cells.filter(isWhole)),
  };
}

/** The object that a text is as JSON; of another text, nothing. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How many cells of a notebook's file are damaged, and not in the notebook. */
export function damagedCells(text: string, { cells }: Notebook): number {
  return (JSON.parse(text) as Notebook).cells.length - cells.length;
}

/** Cells have names from format 4.5 on. Those without are counted: the first piece of code is "1". */
function withIds(cells: NotebookCell[]): NotebookCell[] {
  const taken = new Set(cells.map(({ id }) => id));
  const seen = new Set<string>();
  const count = new Map<string, number>();
  const counted = ({ cell_type }: NotebookCell): string => {
    for (;;) {
      const number = (count.get(cell_type) ?? 0) + 1;
      count.set(cell_type, number);
      const id = cell_type === "code" ? String(number) : `text-${number}`;
      if (!taken.has(id) && !seen.has(id)) return id;
    }
  };
  return cells.map((cell) => {
    const id = typeof cell.id === "string" && !seen.has(cell.id) ? cell.id : counted(cell);
    seen.add(id);
    return { ...cell, id };
  });
}

/** A cell of code, with nothing in it unless `given` says what. */
export function codeCell(fields: Partial<NotebookCell> = {}): NotebookCell {
  const empty = { id: newId(), metadata: {}, execution_count: null, outputs: [], source: [] };
  return { cell_type: "code", ...empty, ...fields };
}

/** A notebook of these cells, as a file. */
export function notebookText(cells: NotebookCell[]): string {
  const metadata = {
    kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
    language_info: { name: "python" },
  };
  return `${JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}

function newId(): string {
  return Math.random().toString(16).slice(2, 10).padEnd(8, "0");
}

/** A cell with another text, perhaps of another kind. */
export function rewritten(cell: NotebookCell, kind: "code" | "text", text: string): NotebookCell {
  const { outputs, execution_count, ...rest } = cell;
  const isCode = cell.cell_type === "code";
  const source = text === "" ? [] : text.split(/(?<=\n)/);
  if (kind === "text") return { ...rest, cell_type: isCode ? "markdown" : cell.cell_type, source };
  return { ...rest, cell_type: "code", source, outputs: outputs ?? [], execution_count: null };
}

/** A damaged notebook may have anything in the place of a cell, and of what is in it. */
function isWhole(cell: unknown): cell is NotebookCell {
  if (!isObject(cell)) return false;
  const { cell_type, source, outputs = [], execution_count = null } = cell;
  return (
    isString(cell_type) &&
    isText(source) &&
    (execution_count === null || Number.isFinite(execution_count)) &&
    Array.isArray(outputs) &&
    outputs.every(isOutput)
  );
}

function isOutput(output: unknown): boolean {
  if (!isObject(output)) return false;
  const { output_type, name = "", text = "", data = {}, ename = "", evalue = "" } = output;
  const { traceback = [] } = output;
  return (
    [output_type, name, ename, evalue].every(isString) &&
    isText(text) &&
    isLines(traceback) &&
    isObject(data) &&
    SHOWN.every((kind) => isText(data[kind] ?? ""))
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
const isString = (value: unknown): boolean => typeof value === "string";
const isLines = (value: unknown): boolean => Array.isArray(value) && value.every(isString);
const isText = (value: unknown): boolean => isString(value) || isLines(value);

export function sourceOf({ source }: NotebookCell): string {
  return joined(source);
}

/** A cell's Markdown with its attachments in the places of their names, `attachment:picture.png`. */
export function withAttachments(text: string, cell: NotebookCell | undefined): string {
  const attached = isObject(cell?.attachments) ? cell.attachments : {};
  return text.replace(/\battachment:([^\s)"'>]+)/g, (whole, name: string) => {
    const picture = attached[name] ?? attached[decoded(name)];
    const [type, data] = (isObject(picture) && Object.entries(picture)[0]) || [];
    return typeof data === "string" ? `data:${type};base64,${data.replace(/\s/g, "")}` : whole;
  });
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

export function codeCells({ cells }: Notebook): NotebookCell[] {
  return cells.filter(({ cell_type }) => cell_type === "code");
}

/** A notebook's text without outputs, which are kept as runs. */
export function withoutOutputs(notebook: Notebook): string {
  const cells = notebook.cells.map((cell) =>
    cell.cell_type === "code" ? { ...cell, execution_count: null, outputs: [] } : cell,
  );
  return JSON.stringify({ ...notebook, cells });
}

/** The outputs that a notebook brings along, as runs of its cells. */
export function runsOf(notebook: Notebook, at: number): RunRecord[] {
  return codeCells(notebook).flatMap((cell) => {
    if (!cell.outputs?.length) return [];
    const failed = cell.outputs.find(({ output_type }) => output_type === "error");
    return {
      cell: cell.id,
      source: sourceOf(cell),
      ...(cell.outputs.every(isStream) ? {} : { file: cell.outputs }),
      ...(cell.execution_count ? { count: cell.execution_count } : {}),
      ok: !failed,
      elapsedMs: 0,
      at,
      output: cell.outputs.filter((output) => output !== failed).map(chunkOf),
      notes: [],
      error: failed
        ? {
            kind: failed.ename ?? "Error",
            message: failed.evalue ?? "",
            text: shortened((failed.traceback ?? []).join("\n").replace(ESCAPES, "")),
            diagnostics: [],
          }
        : null,
      modules: [],
    };
  });
}

/** A traceback without its start, where it is too long for the page to show. */
function shortened(text: string): string {
  const left = text.length - MAX_TRACEBACK;
  if (left <= 0) return text;
  return `… ${left.toLocaleString("en")} characters are left out …\n${text.slice(left)}`;
}

function chunkOf({ output_type, name, text, data = {} }: NotebookOutput): OutputChunk {
  if (output_type === "stream")
    return { stream: name === "stderr" ? "stderr" : "stdout", text: joined(text) };
  const plain = joined(data["text/plain"]);
  const page = (html: string): OutputChunk => ({ stream: "stdout", text: "", html });
  const form = SHOWN.find((each) => joined(data[each]));
  const shown = form ? joined(data[form]) : "";
  switch (form) {
    case "image/png": {
      const url = PNG + shown.replace(/\s/g, "");
      const picture = { url, width: 0, height: 0, description: plain };
      return { stream: "stdout", text: "", picture };
    }
    case "image/jpeg":
      return page(`<img src="data:image/jpeg;base64,${shown.replace(/[^\w+/=]/g, "")}">`);
    case "image/svg+xml":
    case "text/html":
      return page(shown);
    default:
      return { stream: "stdout", text: `${shown}\n` };
  }
}

/** A notebook with the outputs of the last runs of its cells, as a file. */
export function withOutputs(
  notebook: Notebook,
  latest: (cell: string) => RunRecord | undefined,
): string {
  const cells = notebook.cells.map((cell) => {
    if (cell.cell_type !== "code") return cell;
    const run = latest(cell.id);
    return { ...cell, execution_count: run?.count ?? null, outputs: run ? outputsOf(run) : [] };
  });
  // From this format on cells have names.
  const nbformat_minor = Math.max(5, Number(notebook.nbformat_minor) || 5);
  return `${JSON.stringify({ ...notebook, cells, nbformat_minor }, null, 1)}\n`;
}

const isStream = ({ output_type }: NotebookOutput): boolean => output_type === "stream";

function outputsOf({ file, output, modules, error }: RunRecord): object[] {
  if (file) return file;
  const shown = (data: Record<string, string>): object => ({
    output_type: "display_data",
    metadata: {},
    data,
  });
  const outputs = output.map(({ stream, text, picture, html }) => {
    if (picture)
      return shown({
        "text/plain": picture.description,
        "image/png": picture.url.slice(PNG.length),
      });
    if (html) return shown({ "text/plain": "HTML", "text/html": html });
    return { output_type: "stream", name: stream, text };
  });
  outputs.push(...modules.map(({ source }) => shown({ "text/plain": source })));
  if (error) {
    const { kind, message, text } = error;
    const traceback = text.split("\n");
    outputs.push({ output_type: "error", ename: kind, evalue: message, traceback });
  }
  return outputs;
}

function joined(text: string | string[] | undefined): string {
  return Array.isArray(text) ? text.join("") : (text ?? "");
}
