/** Other engines, each as {prepare, sample, forget}.
 *
 * `prepare(name, operator, inputs)` makes a computation of `inputs`, a list of [Float32Array,
 * shape], and gives its result as a Float32Array. `sample(name)` gives seconds per call.
 */

import { chain } from "./onnx.mjs";

/** Milliseconds. */
const WARM_UP = 300;
const BATCH = 8;

export const PEERS = { tfjs: loadTfjs, ort: loadOrt };

/** A computation's timer: warms up at first, then runs in batches long against the clock's step. */
export async function sampler(run) {
  let number = 1;
  const batch = async () => {
    const start = performance.now();
    const end = run(number);
    if (end !== undefined) await end;
    return performance.now() - start;
  };
  const begin = performance.now();
  for (let calls = 0; calls < 2 || performance.now() - begin < WARM_UP; calls++) {
    const time = await batch();
    if (time < BATCH) number = Math.ceil(number * Math.min(8, Math.max(1.2, BATCH / time)));
    if (performance.now() - begin > 10 * WARM_UP) break;
  }
  return async () => {
    const time = await batch();
    const taken = number;
    if (time > 0) number = Math.max(1, Math.round((taken * BATCH) / time));
    return time / taken / 1e3;
  };
}

export function engine(make) {
  const prepared = new Map();
  return {
    async prepare(name, operator, inputs) {
      const { run, result, free } = await make(operator, inputs);
      prepared.set(name, { sample: await run(), free });
      return result;
    },
    sample: (name) => prepared.get(name).sample(),
    forget(name) {
      prepared.get(name)?.free();
      prepared.delete(name);
    },
  };
}

export async function loadScript(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  (0, eval)(await response.text());
}

async function loadTfjs() {
  await loadScript("peers/tfjs/tf-core.min.js");
  await loadScript("peers/tfjs/tf-backend-wasm.min.js");
  const tf = self.tf;
  // One thread: the build without threads.
  tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", false);
  tf.wasm.setWasmPaths(new URL("peers/tfjs/", self.location.href).href);
  await tf.setBackend("wasm");
  await tf.ready();
  return engine(async (operator, inputs) => {
    const tensors = inputs.map(([data, shape]) => tf.tensor(data, shape));
    const { compute, arguments: values } = TFJS[operator](tf, tensors);
    const once = tf.tidy(() => compute(...values));
    const result = (await once.data()).slice();
    once.dispose();
    const run = () =>
      sampler((number) => {
        for (let call = 0; call < number; call++) tf.tidy(() => void compute(...values));
      });
    return { run, result, free: () => tf.dispose([...tensors, ...values]) };
  });
}

/** The fastest way to say each computation in TensorFlow.js. Weights may be transposed before. */
export const TFJS = {
  matmul: (tf, values) => ({ compute: (a, b) => tf.matMul(a, b), arguments: values }),
  bmm_relu: (tf, values) => ({ compute: (a, b) => tf.relu(tf.matMul(a, b)), arguments: values }),
  relu: (tf, values) => ({ compute: (a) => tf.relu(a), arguments: values }),
  add: (tf, values) => ({ compute: (a, b) => tf.add(a, b), arguments: values }),
  softmax: (tf, values) => ({ compute: (a) => tf.softmax(a), arguments: values }),
  mean: (tf, values) => ({ compute: (a) => tf.mean(a, 1), arguments: values }),
  mlp: (tf, [x, w0, b0, w1, b1]) => ({
    compute: (x, w0, b0, w1, b1) => {
      const hidden = tf.fused.matMul({ a: x, b: w0, bias: b0, activation: "relu" });
      return tf.fused.matMul({ a: hidden, b: w1, bias: b1 });
    },
    arguments: [x, tf.transpose(w0), b0, tf.transpose(w1), b1],
  }),
  // TensorFlow.js has no other layout for images than channels last.
  conv2d: (tf, [image, weights]) => ({
    compute: (a, w) => tf.conv2d(a, w, 1, "valid"),
    arguments: [tf.transpose(image, [0, 2, 3, 1]), tf.transpose(weights, [2, 3, 1, 0])],
  }),
  layer_norm: (tf, values) => ({
    compute: (a, scale, shift) => {
      const { mean, variance } = tf.moments(a, 1, true);
      const factor = tf.rsqrt(tf.add(variance, 1e-5));
      return tf.add(tf.mul(tf.mul(tf.sub(a, mean), factor), scale), shift);
    },
    arguments: values,
  }),
};

async function loadOrt() {
  const ort = await import("./peers/ort/ort.wasm.bundle.min.mjs");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL("peers/ort/", self.location.href).href;
  return engine(async (operator, inputs) => {
    const session = async (copies) => {
      const { model, feeds } = chain(operator, inputs, copies);
      const made = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
      const values = Object.fromEntries(
        Object.entries(feeds).map(([key, [data, shape]]) => [key, new ort.Tensor("float32", data, shape)]),
      );
      return { run: () => made.run(values), free: () => made.release() };
    };
    const one = await session(1);
    const result = (await one.run()).result.data.slice();
    const more = 1 + copiesBeyondOne(inputs);
    const many = await session(more);
    // Arrays go to and fro with each call, which the engine cannot avoid. So what is counted is by
    // how much a graph of several copies of the operator takes longer than that of one.
    const run = async () => {
      const [long, short] = [await sampler(repeated(many)), await sampler(repeated(one))];
      return async () => {
        const whole = await long();
        return Math.max(0, whole - (await short())) / (more - 1);
      };
    };
    return { run, result, free: () => [one.free(), many.free()] };
  });
}

const repeated = ({ run }) => async (number) => {
  for (let call = 0; call < number; call++) await run();
};

/** Many copies of what is quick, so that they outweigh the call. */
function copiesBeyondOne(inputs) {
  const elements = Math.max(...inputs.map(([data]) => data.length));
  return elements >= 1 << 20 ? 2 : elements >= 1 << 18 ? 4 : 16;
}
