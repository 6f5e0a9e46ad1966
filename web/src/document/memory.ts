/**
 * What the browser keeps of documents beside their text: their runs, and what was looked at.
 *
 * It is bounded: of a document the oldest runs go first, but the last of each cell stays; of all
 * documents that which was used the longest time ago. Texts are kept elsewhere, and never go.
 */

import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import { isRun, type RunRecord, sizeOf } from "./record";

/** Runs kept of a document beside the last of each cell. */
const MAX_RUNS = 30;
/** Characters kept of a document. */
const MAX_DOCUMENT = 2_000_000;
const MAX_DOCUMENTS = 30;
/** Milliseconds between a change and its way into the database. */
const DELAY = 300;
/** Milliseconds that a document waits for the database before it is shown without. */
const PATIENCE = 1000;

export interface Kept {
  id: string;
  /** When it was used last, in milliseconds since 1970. */
  at: number;
  runs: RunRecord[];
  scroll: number;
  view: string | null;
}

interface Schema extends DBSchema {
  documents: { key: string; value: Kept; indexes: { at: number } };
}

type Database = IDBPDatabase<Schema>;

let opened: Promise<Database | null> | null = null;

/** The browser's database; null where it is denied. */
function database(): Promise<Database | null> {
  opened ??= connect().catch(() => null);
  return opened;
}

/** Even to name `indexedDB` may throw: here that is a promise that fails. */
async function connect(): Promise<Database> {
  return openDB<Schema>("mlcweb-documents", 1, {
    upgrade(created) {
      created.createObjectStore("documents", { keyPath: "id" }).createIndex("at", "at");
    },
  });
}

export class DocumentMemory {
  /** The latest last. */
  runs: RunRecord[] = [];
  /** Pixels that the document is scrolled by. */
  scroll = 0;
  /** The view at the front. */
  view: string | null = null;
  private saving: ReturnType<typeof setTimeout> | undefined;

  private constructor(
    /** What Python and the views know the document by. */
    readonly id: string,
    /** What the database knows it by. */
    private key: string,
  ) {}

  /** What is kept of a document; of none, nothing. */
  static async open(key: string, id = key): Promise<DocumentMemory> {
    const memory = new DocumentMemory(id, key);
    const kept = database().then((store) => store?.get("documents", key));
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE));
    const record = await Promise.race([kept, late]).catch(() => undefined);
    if (record) memory.restore(record);
    return memory;
  }

  /** Take what the database holds, but for what is damaged. */
  restore({ runs, scroll, view }: Partial<Record<keyof Kept, unknown>>): void {
    this.runs = Array.isArray(runs) ? runs.filter(isRun) : [];
    this.scroll = typeof scroll === "number" ? scroll : 0;
    this.view = typeof view === "string" ? view : null;
  }

  /** The last run of a cell; of any without one. */
  latest(cell?: string): RunRecord | undefined {
    return this.runs.findLast((run) => cell === undefined || run.cell === cell);
  }

  add(run: RunRecord): void {
    this.runs = bounded([...this.runs, run]);
    this.saveSoon();
  }

  /** Let go of all runs but these. */
  replace(runs: RunRecord[]): void {
    this.runs = bounded(runs);
    void this.save().catch(() => undefined);
  }

  /** The document has another name from now on; Python and the views keep theirs. */
  async rename(key: string): Promise<void> {
    const before = this.key;
    this.key = key;
    await this.save();
    await (await database())?.delete("documents", before);
  }

  saveSoon(): void {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => void this.save().catch(() => undefined), DELAY);
  }

  private async save(): Promise<void> {
    const store = await database();
    const { key, runs, scroll, view } = this;
    await store?.put("documents", { id: key, at: Date.now(), runs, scroll, view });
    if (store) await evict(store);
  }
}

/** The runs that are kept of a document. */
export function bounded(runs: RunRecord[]): RunRecord[] {
  const last = new Map(runs.map((run) => [run.cell, run]));
  const old = runs.filter((run) => last.get(run.cell) !== run);
  let excess = sum(runs.map(sizeOf)) - MAX_DOCUMENT;
  const gone = new Set<RunRecord>();
  for (const [at, run] of old.entries()) {
    if (excess <= 0 && old.length - at <= MAX_RUNS) break;
    gone.add(run);
    excess -= sizeOf(run);
  }
  return runs.filter((run) => !gone.has(run));
}

/** Let go of the documents that were used the longest time ago. */
async function evict(store: Database): Promise<void> {
  const change = store.transaction("documents", "readwrite");
  const keys = await change.store.index("at").getAllKeys();
  const old = keys.slice(0, Math.max(0, keys.length - MAX_DOCUMENTS));
  await Promise.all([...old.map((key) => change.store.delete(key)), change.done]);
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
