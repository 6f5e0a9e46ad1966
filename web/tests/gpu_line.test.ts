import { expect, test, vi } from "vitest";
import { GpuLine } from "../src/gpu/line";
import type { GpuAnswer, GpuQuestion } from "../src/gpu/messages";
import { newReply, readReply, replyBytes, writeReply } from "../src/gpu/reply";
import { type Gpu, GpuServer } from "../src/gpu/server";
import { GpuStarter, type GpuWorker } from "../src/gpu/starter";

const FACTS = { description: "a GPU", limits: { maxBufferSize: 64 }, features: ["shader-f16"] };

/** A device of which all methods are watched. */
function fakeGpu(methods: Partial<Gpu> = {}): Gpu {
  return { lost: "", ...FACTS, ...methods } as Gpu;
}

/** What a server answers, each question after the one before it. */
function serve(gpu: Gpu) {
  const server = new GpuServer({ open: () => Promise.resolve(gpu) });
  const tell = (name: string, ...args: unknown[]) => server.receive({ device: 1, name, args });
  const ask = async (name: string, args: unknown[] = [], bytes = 0): Promise<GpuAnswer> => {
    const reply = newReply(bytes);
    server.receive({ device: 1, name, args, reply });
    const state = new Int32Array(reply, 0, 1);
    await vi.waitFor(() => expect(Atomics.load(state, 0)).not.toBe(0));
    const answer = readReply(reply);
    return bytes ? { ...answer, value: replyBytes(reply) } : answer;
  };
  return { tell, ask };
}

/** A line to somebody who answers at once. */
function answered(answer: (question: GpuQuestion) => Partial<GpuAnswer>, bytes?: Uint8Array) {
  const asked: GpuQuestion[] = [];
  const port = {
    postMessage(question: GpuQuestion) {
      asked.push(question);
      if (!question.reply) return;
      const found = { value: null, lost: "", ...answer(question) };
      writeReply(question.reply, found, question.name === "read" ? bytes : undefined);
    },
  };
  const interrupt = new Uint8Array(1);
  const line = new GpuLine(port as unknown as MessagePort, interrupt);
  return { asked, interrupt, line };
}

test("a device is opened, and what it has is named by numbers", async () => {
  const buffer = {};
  const dispatched: unknown[][] = [];
  const { tell, ask } = serve(
    fakeGpu({
      createBuffer: () => Promise.resolve(buffer),
      createSmallBuffer: () => ({ small: true }),
      createPipeline: (code) => Promise.resolve({ pipeline: { code } }),
      createBindings: (pipeline, buffers) => ({ pipeline, buffers }),
      dispatch: (...launch) => void dispatched.push(launch),
      wait: () => Promise.resolve(),
      read: (of, length) =>
        Promise.resolve(of === buffer ? new Uint8Array(length).fill(7) : new Uint8Array(length)),
    }),
  );
  expect((await ask("open", [[], [], 1])).value).toEqual(FACTS);
  expect((await ask("createBuffer", [2, 64])).value).toBe(true);
  tell("createSmallBuffer", 3, 4);
  expect((await ask("createPipeline", [4, "code", "main"])).value).toBeNull();
  tell("createBindings", 5, 4, [2, 3], [64, 4], new Uint8Array());
  tell("dispatch", 4, 5, 1, 2, 3);
  await ask("wait");
  const bindings = { pipeline: { code: "code" }, buffers: [buffer, { small: true }] };
  expect(dispatched).toEqual([[{ code: "code" }, bindings, 1, 2, 3]]);
  expect((await ask("read", [2, 3], 3)).value).toEqual(new Uint8Array([7, 7, 7]));
});

test("why there is no device, no room and no pipeline is told", async () => {
  const refuse = new GpuServer({ open: () => Promise.reject(new Error("no GPU")) });
  const reply = newReply(0);
  refuse.receive({ device: 1, name: "open", args: [], reply });
  const state = new Int32Array(reply, 0, 1);
  await vi.waitFor(() => expect(Atomics.load(state, 0)).not.toBe(0));
  expect(readReply(reply).error).toBe("no GPU");
  const { tell, ask } = serve(
    fakeGpu({
      createBuffer: () => Promise.resolve(null),
      createPipeline: (code) => Promise.resolve(code ? { message: "bad", line: 2 } : null),
      dispatch: () => {
        throw new Error("the device is gone");
      },
      wait: () => Promise.resolve(),
    }),
  );
  await ask("open", [[], [], 1]);
  expect((await ask("createBuffer", [2, 64])).value).toBe(false);
  expect((await ask("createPipeline", [3, "code", ""])).value).toEqual({ message: "bad", line: 2 });
  expect(await ask("createPipeline", [4, "", ""])).toEqual({ value: null, lost: "" });
  // Nobody waits for a launch; the next answer says what became of it.
  tell("dispatch", 1, 2, 1, 1, 1);
  expect((await ask("wait")).lost).toBe("The GPU failed (the device is gone).");
});

test("Python gets results instead of promises", () => {
  const { asked, line } = answered(
    ({ name }) => ({ value: name === "open" ? FACTS : name === "time" ? 0.5 : true }),
    new Uint8Array([1, 2, 3]),
  );
  // biome-ignore lint/suspicious/noExplicitAny: as Python has it
  const gpu = line.open(["maxBufferSize"], [], 30) as any;
  expect([gpu.description, gpu.limits, gpu.features]).toEqual(Object.values(FACTS));
  const buffer = gpu.createBuffer(64);
  expect(gpu.read(buffer, 3)).toEqual(new Uint8Array([1, 2, 3]));
  gpu.write(buffer, new Uint8Array([4]));
  const bindings = gpu.createBindings(buffer, [buffer], [64], new Uint8Array());
  gpu.dispatch(buffer, bindings, 1, 2, 3);
  expect(gpu.time([[buffer, bindings, 1, 1, 1]], 10)).toBe(0.5);
  const names = asked.map(({ name, args }) => [name, ...args.filter((x) => typeof x === "number")]);
  const [b, k] = [buffer.number, bindings.number];
  expect(names.slice(1)).toEqual([
    ["createBuffer", b, 64],
    ["read", b, 3],
    ["write", b],
    ["createBindings", k, b],
    ["dispatch", b, k, 1, 2, 3],
    ["time", 10],
  ]);
});

test("a lost device, no room and an error reach Python", () => {
  const { line } = answered(({ name }) =>
    name === "open"
      ? { value: FACTS }
      : name === "createBuffer"
        ? { value: false }
        : name === "wait"
          ? { lost: "gone" }
          : { error: "no such thing" },
  );
  // biome-ignore lint/suspicious/noExplicitAny: as Python has it
  const gpu = line.open([], [], 30) as any;
  expect(gpu.createBuffer(64)).toBeNull();
  gpu.wait();
  expect(gpu.lost).toBe("gone");
  expect(() => gpu.createPipeline("", "")).toThrow("no such thing");
});

test("a program that waits for the GPU can be stopped", () => {
  const { line, interrupt } = answered(() => ({ value: FACTS }));
  const silent = new GpuLine({ postMessage: () => undefined } as unknown as MessagePort, interrupt);
  interrupt[0] = 2;
  silent.onInterrupt = () => {
    throw new Error("KeyboardInterrupt");
  };
  expect(() => silent.open([], [], 30)).toThrow("KeyboardInterrupt");
  expect(line.open([], [], 30)).toHaveProperty("description", "a GPU");
});

test("the worker starts with the first question, and gets the line", async () => {
  const started: unknown[] = [];
  let ended = 0;
  const worker: GpuWorker = {
    postMessage: (message) => void started.push(message),
    terminate: () => {
      ended += 1;
    },
  };
  const starter = new GpuStarter(() => worker);
  starter.end();
  expect([started.length, ended]).toEqual([0, 0]);
  starter.port.postMessage({ device: 1, name: "open", args: [] });
  await vi.waitFor(() => expect(started).toHaveLength(1));
  expect(started[0]).toMatchObject({ first: { name: "open" } });
  starter.end();
  expect(ended).toBe(1);
});
