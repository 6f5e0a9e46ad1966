/** Whether a message is one that a worker of ours sends: programs run there, and may try others. */

import type { FromWorker, Picture, ToTrialPool } from "./wire";

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

function isChunk(data: unknown): boolean {
  if (!isObject(data) || !isText(data.text)) return false;
  const { stream, dropped, picture, html } = data;
  return (
    (stream === "stdout" || stream === "stderr") &&
    (dropped === undefined ||
      (isObject(dropped) && isNumber(dropped.lines) && isNumber(dropped.characters))) &&
    (picture === undefined || isPicture(picture)) &&
    (html === undefined || isText(html))
  );
}

const isShared = (data: unknown): boolean =>
  typeof SharedArrayBuffer !== "undefined" && data instanceof SharedArrayBuffer;
const isText = (data: unknown): data is string => typeof data === "string";
const isNumber = (data: unknown): data is number => Number.isFinite(data);
const isObject = (data: unknown): data is Fields => typeof data === "object" && data !== null;
