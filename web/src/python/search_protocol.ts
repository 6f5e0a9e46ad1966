/** What the Search view and `mlcweb.playground.search` say to each other. */

import type { ShownTrace } from "./protocol";

export type Strategy = "function" | "random" | "evolutionary" | "exhaustive";

/** A module of the program. `model`: it has a graph function "main". */
export interface SearchModule {
  name: string;
  /** Its TensorIR functions. */
  functions: string[];
  model: boolean;
}

export interface SearchSettings {
  module: string;
  function: string | null;
  strategy: Strategy;
  /** For the strategy "function": a function of the program that takes a schedule. */
  scheduleFunction: string | null;
  seed: number;
  /** The budget: trials or seconds. */
  trials: number | null;
  seconds: number | null;
  workers: number | null;
}

/** A record as the page stores it. */
export interface StoredRecord {
  /** That of its schedule. */
  id: string;
  /** The key of its workload. */
  workload: string;
  /** The hash of the scheduled program, where it is known. */
  program: string | null;
  /** Null for a schedule that failed. */
  seconds: number | null;
  /** The record as TVM's file of records holds it, without the workload's number. */
  record: string;
}

/** Records of one workload. `line` is the workload as TVM's file holds it. */
export interface RecordGroup {
  key: string;
  line: string;
  records: StoredRecord[];
}

/** Files of records, read. */
export interface ReadRecords {
  groups: RecordGroup[];
  /** Sentences about lines that were skipped. */
  warnings: string[];
}

/** What earlier searches measured of a workload. */
export interface EarlierRecords {
  /** Pairs of a program's hash and its seconds. */
  programs: [program: string, seconds: number | null][];
  /** The fastest as a whole. */
  lines: { record: string; program: string | null }[];
}

export interface SearchStart {
  id: string;
  title: string;
  /** Time of the program as it stands, unscheduled. */
  baselineSeconds: number | null;
  /** How many trials are measured at one time. */
  workers: number;
  /** Arithmetic operations of a call; 0 where they cannot be counted. */
  operations: number;
}

export interface Trial {
  index: number;
  seed: number;
  /** "recalled": the time comes from an earlier search. */
  state: "measured" | "recalled" | "repeated" | "failed";
  /** The median of `repeats`. */
  seconds: number | null;
  /** Seconds per call of each batch. */
  repeats: number[];
  /** Why a failed trial failed. */
  reason: string | null;
  /** The earlier trial with the same program, whose time a repeated trial takes over. */
  sameAs: number | null;
  /** Measured once more at the end, with nothing beside it. */
  confirmed: boolean;
  decisions: string[];
  /** The number of its design space. */
  space: number;
  /** What the cost model thought of it before it was measured; larger is faster. */
  predicted: number | null;
  round: number;
}

/** A trial as Python tells it. What was told before may be left out. */
export type ToldTrial = Omit<Trial, "decisions" | "space"> &
  Partial<Pick<Trial, "decisions" | "space">> & {
    /** Names of the decisions of its design space, with the first trial of it. */
    labels?: string[] | null;
    record: StoredRecord | null;
  };

export interface TrialDetails {
  trace: ShownTrace | null;
  source: string | null;
  /** The program before any step, and the trial's, line by line with "-", "+" or a blank in front. */
  diff: string;
  /** Python that builds this trial's schedule again. */
  code: string | null;
  /** Python that also replaces the function in its module. */
  replacing: string | null;
}

/** Seconds of a model before and after one of its functions is replaced. */
export interface ModelTimes {
  before: number;
  after: number;
  /** Its graph function. */
  entry: string;
  /** Where the content of each parameter is from: a variable of the program, or "random". */
  inputs: { name: string; from: string }[];
}

/** What Python tells of a search that a program runs by itself; `start` comes with the first message. */
export interface SearchNews {
  id: string;
  start?: SearchStart & { planned: number | null; workload: { key: string; line: string } };
  trials: ToldTrial[];
  over: boolean;
}
