/** Whether a message is one that a worker of ours sends: programs run there, and may try others. */

import type { FromWorker, ToTrialPool } from "./messages";
import type { Picture, RunResult } from "./wire";

type Fields = Record<string, unknown>;

/** What each kind of message must have; the values of answers are as Python gives them. */
const FORMS: Record<FromWorker["type"], (message: Fields) => boolean> = {
  progress: ({ stage, fraction }) => isText(stage) && isNumber(fraction),
  ready: ({ runtime }) => isObject(runtime),
  loaded: () => true,
  pong: () => true,
  snapshot: ({ key, memory }) => isText(key) && memory instanceof Uint8Array,
  startThreads: ({ memory, slots, first, count }) =>
    memory instanceof WebAssembly.Memory &&
    isShared(slots) &&
    isNumber(first) &&
    first > 0 &&
    isNumber(count),
  endThreads: () => true,
  failed: ({ message }) => isText(message),
  restarted: ({ reason }) => isText(reason),
  output: ({ chunks, size }) => isNumber(size) && Array.isArray(chunks) && chunks.every(isChunk),
  event: ({ name }) => isText(name),
  answer: ({ id }) => isNumber(id),
  refusal: ({ id, message }) => isNumber(id) && isText(message),
};

export function isFromWorker(data: unknown): data is FromWorker {
  return isObject(data) && isText(data.type) && Object.hasOwn(FORMS, data.type)
    ? FORMS[data.type as FromWorker["type"]](data)
    : false;
}

/** What each kind of message to the pool of trials must have; workers look at what is in a job. */
const FORMS_OF_TRIALS: Record<ToTrialPool["type"], (message: Fields) => boolean> = {
  open: ({ workload, workers, limitMs }) =>
    isObject(workload) && Array.isArray(workload.arrays) && isNumber(workers) && isNumber(limitMs),
  run: ({ id, job, reply }) =>
    isNumber(id) &&
    isObject(job) &&
    (reply === undefined || (isObject(reply) && isShared(reply.bell) && isShared(reply.answer))),
  close: () => true,
};

export function isForTrials(data: unknown): data is ToTrialPool {
  return isObject(data) && isText(data.type) && Object.hasOwn(FORMS_OF_TRIALS, data.type)
    ? isNumber(data.owner) && FORMS_OF_TRIALS[data.type as ToTrialPool["type"]](data)
    : false;
}

export function isPicture(data: unknown): data is Picture {
  return (
    isObject(data) &&
    isText(data.url) &&
    isText(data.description) &&
    isNumber(data.width) &&
    isNumber(data.height)
  );
}

/** Whether an answer is what a run left: a program may have changed what answers the page. */
export function isRunResult(data: unknown): data is RunResult {
  if (!isObject(data)) return false;
  const { document, ok, error, elapsedMs, searchFunctions } = data;
  return (
    isText(document) &&
    typeof ok === "boolean" &&
    isNumber(elapsedMs) &&
    (error === null || isRunError(error)) &&
    Array.isArray(searchFunctions) &&
    searchFunctions.every(isText) &&
    Object.entries(LEFT_BY_RUNS).every(([name, isPart]) => isListOf(data[name], isPart))
  );
}

const LEFT_BY_RUNS: Record<string, (part: Fields) => boolean> = {
  modules: ({ id, title, source }) => isText(id) && isText(title) && isText(source),
  traces: ({ id, title }) => isText(id) && isText(title),
  programs: ({ id, title }) => isText(id) && isText(title),
  searchModules: ({ name, functions }) =>
    isText(name) && Array.isArray(functions) && functions.every(isText),
};

function isRunError(data: unknown): boolean {
  if (!isObject(data)) return false;
  const { kind, message, text, diagnostics } = data;
  const isPlace = ({ line, column, message }: Fields): boolean =>
    isNumber(line) && isNumber(column) && isText(message);
  return [kind, message, text].every(isText) && isListOf(diagnostics, isPlace);
}

function isChunk(data: unknown): boolean {
  if (!isObject(data) || !isText(data.text)) return false;
  const { stream, dropped, picture, html } = data;
  return (
    (stream === "stdout" || stream === "stderr") &&
    (dropped === undefined || isDropped(dropped)) &&
    (picture === undefined || isPicture(picture)) &&
    (html === undefined || isText(html))
  );
}

function isDropped(data: unknown): boolean {
  if (!isObject(data)) return false;
  const { lines, characters, pictures = 0, pages = 0 } = data;
  return [lines, characters, pictures, pages].every(isNumber);
}

const isListOf = (data: unknown, isPart: (part: Fields) => boolean): boolean =>
  Array.isArray(data) && data.every((part) => isObject(part) && isPart(part));
const isShared = (data: unknown): boolean =>
  typeof SharedArrayBuffer !== "undefined" && data instanceof SharedArrayBuffer;
const isText = (data: unknown): data is string => typeof data === "string";
const isNumber = (data: unknown): data is number => Number.isFinite(data);
const isObject = (data: unknown): data is Fields => typeof data === "object" && data !== null;
