/** Records of searches: in the browser's own database, or in memory where that is denied. */

import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import type { EarlierRecords, RecordGroup, StoredRecord } from "../../python/wire";
import { groupBy } from "../kit";

const NAME = "mlcweb-records";
const VERSION = 1;

/** The fastest records of a workload that a search gets as a whole, at most. */
const FASTEST = 200;

/** Milliseconds that the first of some records waits for others. */
const DELAY = 1000;

/** The names that TVM gives to the two files of a database. */
export const WORKLOADS = "database_workload.json";
export const RECORDS = "database_tuning_record.json";

export interface StoredWorkload {
  key: string;
  line: string;
}

interface Schema extends DBSchema {
  workloads: { key: string; value: StoredWorkload };
  records: { key: string; value: StoredRecord; indexes: { workload: string } };
}

type Database = Pick<IDBPDatabase<Schema>, "transaction" | "getAll" | "getAllFromIndex" | "count">;

/** Even to name `indexedDB` may throw: here that is a promise that fails. */
async function openDatabase(): Promise<Database> {
  return openDB<Schema>(NAME, VERSION, {
    upgrade(created) {
      created.createObjectStore("workloads", { keyPath: "key" });
      created.createObjectStore("records", { keyPath: "id" }).createIndex("workload", "workload");
    },
  });
}

/** Records in the browser's database until that fails, as one that is denied, damaged or full does;
 * from then on in memory. */
export class RecordStore {
  private readonly workloads = new Map<string, StoredWorkload>();
  private readonly records = new Map<string, StoredRecord>();

  private database: Promise<Database> | null;

  constructor(database: Promise<Database> | null = openDatabase()) {
    this.database = database;
  }

  /** Whether records outlive the page, as far as is known. */
  get lasting(): boolean {
    return this.database !== null;
  }

  /** Store records; one of the same schedule takes the place of the older. */
  add(workload: StoredWorkload, records: StoredRecord[]): Promise<void> {
    return this.ask(
      async (database) => {
        const change = database.transaction(["workloads", "records"], "readwrite");
        const into = change.objectStore("records");
        await Promise.all([
          change.objectStore("workloads").put(workload),
          ...records.map((record) => into.put(record)),
          change.done,
        ]);
      },
      () => {
        this.workloads.set(workload.key, workload);
        for (const record of records) this.records.set(record.id, record);
      },
    );
  }

  ofWorkload(key: string): Promise<StoredRecord[]> {
    return this.ask(
      (database) => database.getAllFromIndex("records", "workload", key),
      () => [...this.records.values()].filter(({ workload }) => workload === key),
    );
  }

  async all(): Promise<RecordGroup[]> {
    const workloads = await this.ask(
      (database) => database.getAll("workloads"),
      () => [...this.workloads.values()],
    );
    return Promise.all(
      workloads.map(async ({ key, line }) => ({ key, line, records: await this.ofWorkload(key) })),
    );
  }

  count(): Promise<number> {
    return this.ask(
      (database) => database.count("records"),
      () => this.records.size,
    );
  }

  clear(): Promise<void> {
    return this.ask(
      async (database) => {
        const change = database.transaction(["workloads", "records"], "readwrite");
        await Promise.all([
          change.objectStore("workloads").clear(),
          change.objectStore("records").clear(),
          change.done,
        ]);
      },
      () => {
        this.workloads.clear();
        this.records.clear();
      },
    );
  }

  private async ask<T>(stored: (database: Database) => Promise<T>, inMemory: () => T): Promise<T> {
    try {
      if (this.database) return await stored(await this.database);
    } catch {
      this.database = null;
    }
    return inMemory();
  }
}

/** What a search gets of the records of its workload: all by hash, the fastest as a whole. */
export function earlier(stored: unknown[]): EarlierRecords {
  const records = stored.filter(isRecord);
  const ran = records
    .filter(({ seconds }) => seconds !== null)
    .sort((a, b) => a.seconds! - b.seconds!);
  return {
    programs: records.flatMap(({ program, seconds }): [string, number | null][] =>
      program ? [[program, seconds]] : [],
    ),
    lines: ran.slice(0, FASTEST).map(({ record, program }) => ({ record, program })),
    unreadable: stored.length - records.length,
  };
}

/** Whether this is a record: the browser's database may be damaged. */
function isRecord(stored: unknown): stored is StoredRecord {
  const record = stored as Partial<StoredRecord> | null;
  return (
    typeof record?.record === "string" &&
    (record.program === null || /^[0-9a-f]{1,16}$/.test(record.program ?? "")) &&
    (record.seconds === null || typeof record.seconds === "number")
  );
}

/** Groups of records as TVM's two files: each line of the second has the number of a line of the first. */
export function toFiles(groups: RecordGroup[]): Record<string, string> {
  const filled = groups.filter(({ records }) => records.length);
  return {
    [WORKLOADS]: filled.map(({ line }) => `${line}\n`).join(""),
    [RECORDS]: filled
      .flatMap(({ records }, number) => records.map(({ record }) => `[${number},${record}]\n`))
      .join(""),
  };
}

/** Which of TVM's files a text is: by its name, or else by how it begins; null where it is neither. */
export function kindOf(name: string, text: string): string | null {
  if (/workload/i.test(name)) return WORKLOADS;
  if (/tuning_record/i.test(name)) return RECORDS;
  if (/^\s*\[\s*"/.test(text)) return WORKLOADS;
  return /^\s*\[\s*\d+\s*,\s*\[/.test(text) ? RECORDS : null;
}

/** Collects records and stores them now and then, so that a search does not wait for storage. */
export class RecordWriter {
  private waiting: { workload: StoredWorkload; record: StoredRecord }[] = [];
  private timer = 0;

  constructor(
    private readonly store: RecordStore,
    private readonly onStored: () => void,
  ) {}

  add(workload: StoredWorkload, record: StoredRecord): void {
    this.waiting.push({ workload, record });
    this.timer ||= window.setTimeout(() => void this.flush(), DELAY);
  }

  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    const groups = [...groupBy(this.waiting, ({ workload }) => workload.key).values()];
    this.waiting = [];
    for (const group of groups) {
      const records = group.map(({ record }) => record);
      await this.store.add(group[0]!.workload, records);
    }
    if (groups.length) this.onStored();
  }
}
