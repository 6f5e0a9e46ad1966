/** Other engines on WebGPU, as `peers.mjs` has them for the processor. A sample is enqueued calls
 * on arrays that lie on the GPU, until all of them are done. */

import { chain } from "./onnx.mjs";
import { engine, loadScript, sampler, TFJS } from "./peers.mjs";

export const GPU_PEERS = { "tfjs-webgpu": loadTfjs, "ort-webgpu": loadOrt, jax: loadJax };

async function loadTfjs() {
  await loadScript("peers/tfjs/tf-core.min.js");
  await loadScript("peers/tfjs-webgpu/tf-backend-webgpu.min.js");
  const tf = self.tf;
  await tf.setBackend("webgpu");
  await tf.ready();
  // What is still in the engine's hands is handed over and waited for where a number is read.
  const done = async (last) => {
    const number = tf.tidy(() => tf.slice(tf.reshape(last, [-1]), 0, 1));
    await number.data();
    tf.dispose([last, number]);
  };
  return engine(async (operator, inputs) => {
    const tensors = inputs.map(([data, shape]) => tf.tensor(data, shape));
    const { compute, arguments: values } = TFJS[operator](tf, tensors);
    const once = tf.tidy(() => compute(...values));
    const result = (await once.data()).slice();
    once.dispose();
    const run = () =>
      sampler(async (number) => {
        for (let left = number; left > 1; left--) tf.tidy(() => void compute(...values));
        await done(tf.tidy(() => compute(...values)));
      });
    return { run, result, free: () => tf.dispose([...tensors, ...values]) };
  });
}

async function loadOrt() {
  const ort = await import("./peers/ort-webgpu/ort.webgpu.bundle.min.mjs");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL("peers/ort-webgpu/", self.location.href).href;
  return engine(async (operator, inputs) => {
    const { model, feeds } = chain(operator, inputs, 1);
    const session = await ort.InferenceSession.create(model, {
      executionProviders: ["webgpu"],
      preferredOutputLocation: "gpu-buffer",
    });
    const device = await ort.env.webgpu.device;
    const values = Object.fromEntries(
      Object.entries(feeds).map(([key, [data, dims]]) => {
        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        const buffer = device.createBuffer({ size: data.byteLength, usage });
        device.queue.writeBuffer(buffer, 0, data);
        return [key, ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims })];
      }),
    );
    const once = (await session.run(values)).result;
    const result = (await once.getData(true)).slice();
    const run = () =>
      sampler(async (number) => {
        for (let call = 0; call < number; call++) (await session.run(values)).result.dispose();
        await device.queue.onSubmittedWorkDone();
      });
    return { run, result, free: () => session.release() };
  });
}

async function loadJax() {
  const jax = await import("./peers/jax/index.js");
  await jax.init("webgpu");
  jax.defaultDevice("webgpu");
  return engine(async (operator, inputs) => {
    const arrays = inputs.map(([data, shape]) => jax.numpy.array(data).reshape([...shape]));
    const compute = jax.jit(JAX[operator](jax));
    // An array that is passed is used up, but for the references that are taken.
    const call = () => compute(...arrays.map((array) => array.ref));
    const result = (await call().data()).slice();
    const run = () =>
      sampler(async (number) => {
        // What is given back before it is computed is not computed.
        const all = Array.from({ length: number }, call);
        await jax.blockUntilReady(all);
        for (const array of all) array.dispose();
      });
    return { run, result, free: () => arrays.forEach((array) => array.dispose()) };
  });
}

const JAX = {
  matmul: ({ numpy: np }) => (a, b) => np.matmul(a, b),
  softmax: ({ nn }) => (a) => nn.softmax(a, -1),
  mean: ({ numpy: np }) => (a) => np.mean(a, 1),
  conv2d: ({ lax }) => (a, w) => lax.conv(a, w, [1, 1], "VALID"),
  mlp: ({ numpy: np, nn }) => (x, w0, b0, w1, b1) => {
    const hidden = nn.relu(np.matmul(x, np.transpose(w0)).add(b0));
    return np.matmul(hidden, np.transpose(w1)).add(b1);
  },
};
