import { expect, test, vi } from "vitest";
import { GpuLine } from "../src/gpu/line";
import { type GpuAnswer, type GpuQuestion, Handle } from "../src/gpu/messages";
import { type Gpu, GpuServer } from "../src/gpu/server";
import { GpuStarter, type GpuWorker } from "../src/gpu/starter";
import { newReply, readReply, writeReply } from "../src/python/reply";

const FACTS = { description: "a GPU", limits: { maxBufferSize: 64 }, features: ["shader-f16"] };

/** A device of which all methods are watched. */
function fakeGpu(methods: Partial<Gpu> = {}): Gpu {
  return { lost: "", ...FACTS, ...methods } as Gpu;
}

/** What a server answers, each question after the one before it. */
function serve(gpu: Gpu) {
  const server = new GpuServer({ open: () => Promise.resolve(gpu) });
  const tell = (name: string, args: unknown[], result?: number) =>
    server.receive({ device: 1, name, args, result });
  const ask = async (
    name: string,
    args: unknown[] = [],
    { result, size = 0 }: { result?: number; size?: number } = {},
  ): Promise<GpuAnswer> => {
    const reply = newReply(size);
    server.receive({ device: 1, name, args, result, reply });
    const { answer, bytes } = await vi.waitFor(() => replied(reply, size));
    return size ? { ...answer, value: bytes } : answer;
  };
  return { tell, ask };
}

function replied(reply: SharedArrayBuffer, size = 0) {
  const read = readReply<GpuAnswer>(reply, size);
  expect(read).not.toBeNull();
  return read!;
}

/** A line to somebody who answers at once. */
function answered(answer: (question: GpuQuestion) => Partial<GpuAnswer>, bytes?: Uint8Array) {
  const asked: GpuQuestion[] = [];
  const port = {
    postMessage(question: GpuQuestion) {
      asked.push(question);
      if (!question.reply) return;
      const found = { value: null, lost: "", ...answer(question) };
      writeReply(question.reply, found, question.name === "read" && bytes ? [bytes] : []);
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
      createPipeline: (code: string) => Promise.resolve({ pipeline: { code } }),
      createBindings: (pipeline: object, buffers: object[]) => ({ pipeline, buffers }),
      dispatch: (...launch: unknown[]) => void dispatched.push(launch),
      wait: () => Promise.resolve(),
      read: (of: object, length: number) =>
        Promise.resolve(of === buffer ? new Uint8Array(length).fill(7) : new Uint8Array(length)),
    }),
  );
  expect((await ask("open", [[], [], 1])).value).toEqual(FACTS);
  const [first, small, pipeline, bound] = [2, 3, 4, 5].map((number) => new Handle(number));
  expect((await ask("createBuffer", [64], { result: 2 })).value).toBe(true);
  tell("createSmallBuffer", [4], 3);
  expect((await ask("createPipeline", ["code", "main"], { result: 4 })).value).toBe(true);
  tell("createBindings", [pipeline, [first, small], [64, 4], new Uint8Array()], 5);
  tell("dispatch", [pipeline, bound, 1, 2, 3]);
  await ask("wait");
  const bindings = { pipeline: { code: "code" }, buffers: [buffer, { small: true }] };
  expect(dispatched).toEqual([[{ code: "code" }, bindings, 1, 2, 3]]);
  expect((await ask("read", [first, 3], { size: 3 })).value).toEqual(new Uint8Array([7, 7, 7]));
});

test("why there is no device, no room and no pipeline is told", async () => {
  const late = Object.assign(new Error("no GPU"), { name: "TimeoutError" });
  const refuse = new GpuServer({ open: () => Promise.reject(late) });
  const reply = newReply(0);
  refuse.receive({ device: 1, name: "open", args: [], reply });
  const { answer } = await vi.waitFor(() => replied(reply));
  expect(answer).toMatchObject({ error: "no GPU", errorName: "TimeoutError" });
  const { line } = answered(() => answer);
  expect(() => line.open([], [], 30)).toThrow(late);
  const { tell, ask } = serve(
    fakeGpu({
      createBuffer: () => Promise.resolve(null),
      createPipeline: (code: string) => Promise.resolve(code ? { message: "bad", line: 2 } : null),
      dispatch: () => {
        throw new Error("the device is gone");
      },
      wait: () => Promise.resolve(),
    }),
  );
  await ask("open", [[], [], 1]);
  expect((await ask("createBuffer", [64], { result: 2 })).value).toBeNull();
  const bad = await ask("createPipeline", ["code", ""], { result: 3 });
  expect(bad.value).toEqual({ message: "bad", line: 2 });
  const none = await ask("createPipeline", ["", ""], { result: 4 });
  expect(none).toEqual({ value: null, lost: "" });
  // Nobody waits for a launch; the next answer says what became of it.
  tell("dispatch", [1, 2, 1, 1, 1]);
  expect((await ask("wait")).lost).toBe("The GPU failed (the device is gone).");
  expect((await ask("destroy")).error).toBe("A GPU has no destroy");
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
  expect(asked.slice(1).map(({ name, args, result }) => [name, result, ...args])).toEqual([
    ["createBuffer", buffer.number, 64],
    ["read", undefined, buffer, 3],
    ["write", undefined, buffer, new Uint8Array([4])],
    ["createBindings", bindings.number, buffer, [buffer], [64], new Uint8Array()],
    ["dispatch", undefined, buffer, bindings, 1, 2, 3],
    ["time", undefined, [[buffer, bindings, 1, 1, 1]], 10],
  ]);
});

test("a lost device, no room and an error reach Python", () => {
  const { line } = answered(({ name }) =>
    name === "open"
      ? { value: FACTS }
      : name === "createBuffer"
        ? { value: null }
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
