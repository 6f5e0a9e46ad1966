/**
 * What the browser keeps of documents beside their text: their runs, and what was looked at.
 *
 * It is bounded: of a document the oldest runs go first, but the last of each cell stays; of all
 * documents that which was used the longest time ago. Texts are kept elsewhere, and never go.
 */

import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import { Saving } from "../storage";
import { isRun, type RunRecord, sizeOf } from "./record";

/** Runs kept of a document beside the last of each cell. */
const MAX_RUNS = 30;
/** Characters kept of a document. */
const MAX_DOCUMENT = 2_000_000;
const MAX_DOCUMENTS = 30;
/** Milliseconds that a document waits for the database before it is shown without. */
const PATIENCE = 1000;

export interface StoredDocument {
  id: string;
  /** When it was used last, in milliseconds since 1970. */
  at: number;
  runs: RunRecord[];
  scroll: number;
  view: string | null;
}

interface Schema extends DBSchema {
  documents: { key: string; value: StoredDocument; indexes: { at: number } };
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
  /** When all that the database holds of the document is here; before that nothing is stored. */
  read: Promise<void> = Promise.resolve();
  private readonly saving = new Saving(() => void this.save().catch(() => undefined));

  private constructor(
    /** What Python and the views know the document by. */
    readonly id: string,
    /** What the database knows it by. */
    private key: string,
  ) {}

  /** What is kept of a document; of none, nothing. What comes late is there once `read` is. */
  static async open(key: string, id = key): Promise<DocumentMemory> {
    const memory = new DocumentMemory(id, key);
    memory.read = database()
      .then((store) => store?.get("documents", key))
      .then((record) => record && memory.restore(record))
      .catch(() => undefined);
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
    await Promise.race([memory.read, late]);
    return memory;
  }

  /** Keep these runs of a new document, and nothing that an earlier one of its name has left. */
  static create(key: string, runs: RunRecord[]): void {
    const memory = new DocumentMemory(key, key);
    memory.runs = bounded(runs);
    // Before anybody can have asked for them.
    void database()
      .then((store) => store && memory.put(store))
      .catch(() => undefined);
  }

  /** Take what the database holds, but for what is damaged; what has happened meanwhile is later. */
  restore({ runs, scroll, view }: Partial<Record<keyof StoredDocument, unknown>>): void {
    if (Array.isArray(runs)) this.runs = bounded([...runs.filter(isRun), ...this.runs]);
    if (typeof scroll === "number") this.scroll ||= scroll;
    if (typeof view === "string") this.view ??= view;
  }

  /** The last run of a cell; of any without one. */
  latest(cell?: string): RunRecord | undefined {
    return this.runs.findLast((run) => cell === undefined || run.cell === cell);
  }

  add(run: RunRecord): void {
    this.runs = bounded([...this.runs, run]);
    this.saveSoon();
  }

  /** The document has another name from now on; Python and the views keep theirs. */
  async rename(key: string): Promise<void> {
    const before = this.key;
    this.key = key;
    await this.save();
    await (await database())?.delete("documents", before);
  }

  saveSoon(): void {
    this.saving.soon();
  }

  private async save(): Promise<void> {
    await this.read;
    const store = await database();
    if (store) await this.put(store);
  }

  private async put(store: Database): Promise<void> {
    const { key, runs, scroll, view } = this;
    const change = store.transaction("documents", "readwrite");
    void change.store.put({ id: key, at: Date.now(), runs, scroll, view });
    // A page that is left does not hear of the record being there, and would not commit after it.
    change.commit();
    await change.done;
    await evict(store);
  }
}

/** The runs that are kept of a document. */
export function bounded(runs: RunRecord[]): RunRecord[] {
  const last = new Map(runs.map((run) => [run.cell, run]));
  const old = runs.filter((run) => last.get(run.cell) !== run);
  let excess = sum(runs.map(sizeOf)) - MAX_DOCUMENT;
  const evicted = new Set<RunRecord>();
  for (const [at, run] of old.entries()) {
    if (excess <= 0 && old.length - at <= MAX_RUNS) break;
    evicted.add(run);
    excess -= sizeOf(run);
  }
  return runs.filter((run) => !evicted.has(run));
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
