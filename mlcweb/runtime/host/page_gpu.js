/*
 * The JavaScript half of the GPU in a page: memory, programs and a queue of launches of WebGPU.
 *
 * Launches are collected, and handed over when they are many or something waits for them. A device
 * whose work does not come to an end is given up, so that the page can have another one.
 *
 * A page that forbids functions made of text imports this file; elsewhere Python runs its text.
 */

export default (() => {
  const MAP_READ = 0x1;
  const COPY_SRC = 0x4;
  const COPY_DST = 0x8;
  const UNIFORM = 0x40;
  const STORAGE = 0x80;
  const QUERY_RESOLVE = 0x200;
  const MAX_PENDING = 16;
  // Bytes; memory that is smaller is not asked about.
  const LARGE = 1 << 20;

  const LATE = Symbol("late");

  /** What a promise comes to; LATE if that takes longer than some milliseconds. */
  async function within(milliseconds, promise) {
    let timer;
    const late = new Promise((done) => {
      timer = setTimeout(done, milliseconds, LATE);
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Devices that were given up and still work. A browser waits for the work of a device that is
   * destroyed, or that nobody holds, and may draw no page meanwhile.
   */
  const working = new Set();

  const padded = (length) => Math.max(4, (length + 3) & ~3);

  class Gpu {
    constructor(device, adapter, limits, patience) {
      this.device = device;
      this.limits = Object.fromEntries(limits.map((name) => [name, device.limits[name]]));
      this.features = [...device.features];
      const { vendor, architecture, description } = adapter.info ?? {};
      this.description = description || [vendor, architecture].filter(Boolean).join(" ") || "WebGPU";
      this.patience = patience;
      this.lost = "";
      this.pending = [];
      this.progress = 0;
      this.gone = device.lost.then(({ message }) => {
        this.lost ||= `The GPU was lost (${message || "no reason is given"}).`;
      });
      device.onuncapturederror = ({ error }) => {
        this.lost ||= `The GPU failed (${error.message}).`;
      };
    }

    /** Memory; null where there is no room, or the GPU is lost. */
    async createBuffer(length, usage = STORAGE | COPY_SRC | COPY_DST) {
      if (length < LARGE) return this.device.createBuffer({ size: padded(length), usage });
      this.device.pushErrorScope("out-of-memory");
      const buffer = this.device.createBuffer({ size: padded(length), usage });
      const error = await this.inTime(this.device.popErrorScope());
      return this.lost || error ? null : buffer;
    }

    createSmallBuffer(length, usage = STORAGE | COPY_SRC | COPY_DST) {
      return this.device.createBuffer({ size: padded(length), usage });
    }

    destroyBuffer(buffer) {
      this.handOver();
      buffer.destroy();
    }

    write(buffer, bytes) {
      this.handOver();
      const whole = bytes.length & ~3;
      this.device.queue.writeBuffer(buffer, 0, bytes, 0, whole);
      if (whole === bytes.length) return;
      const rest = new Uint8Array(4);
      rest.set(bytes.subarray(whole));
      this.device.queue.writeBuffer(buffer, whole, rest);
    }

    async read(buffer, length) {
      const copy = this.createSmallBuffer(length, MAP_READ | COPY_DST);
      this.handOver((encoder) => encoder.copyBufferToBuffer(buffer, 0, copy, 0, padded(length)));
      await this.inTime(copy.mapAsync(1));
      if (this.lost) return null;
      const bytes = new Uint8Array(copy.getMappedRange()).slice(0, length);
      copy.destroy();
      return bytes;
    }

    /** A compiled function, or why there is none: the first message and its line; null where the
     * GPU is lost. */
    createPipeline(code, entryPoint) {
      return this.inTime(this.compile(code, entryPoint));
    }

    async compile(code, entryPoint) {
      this.device.pushErrorScope("validation");
      const module = this.device.createShaderModule({ code });
      const { messages } = await module.getCompilationInfo();
      await this.device.popErrorScope();
      const error = messages.find(({ type }) => type === "error");
      if (error) return { message: error.message, line: error.lineNum };
      try {
        const compute = { module, entryPoint };
        const made = await this.device.createComputePipelineAsync({ layout: "auto", compute });
        return { pipeline: made };
      } catch (failure) {
        return { message: failure.message, line: 0 };
      }
    }

    createBindings(pipeline, buffers, lengths, scalars) {
      const parts = buffers.map((buffer, index) => ({ buffer, size: padded(lengths[index]) }));
      if (scalars.length) {
        const uniform = this.createSmallBuffer(scalars.length, UNIFORM | COPY_DST);
        this.device.queue.writeBuffer(uniform, 0, scalars);
        parts.push({ buffer: uniform, size: scalars.length });
      }
      const entries = parts.map((resource, binding) => ({ binding, resource }));
      return this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    }

    dispatch(...launch) {
      if (this.pending.push(launch) >= MAX_PENDING) this.handOver();
    }

    wait() {
      this.handOver();
      return this.inTime(this.device.queue.onSubmittedWorkDone());
    }

    /** Seconds that launches take, some times after each other: by the GPU's clock, if it has one. */
    async time(launches, number) {
      await this.wait();
      const all = [];
      for (let time = 0; time < number; time += 1) all.push(...launches);
      if (!this.features.includes("timestamp-query")) {
        const start = performance.now();
        for (const launch of all) this.dispatch(...launch);
        await this.wait();
        return (performance.now() - start) * 1e-3;
      }
      const querySet = this.device.createQuerySet({ type: "timestamp", count: 2 });
      const ticks = this.createSmallBuffer(16, QUERY_RESOLVE | COPY_SRC);
      this.pending = all;
      const timestampWrites = {
        querySet,
        beginningOfPassWriteIndex: 0,
        endOfPassWriteIndex: 1,
      };
      this.handOver((encoder) => encoder.resolveQuerySet(querySet, 0, 2, ticks, 0), {
        timestampWrites,
      });
      const bytes = await this.read(ticks, 16);
      querySet.destroy();
      ticks.destroy();
      if (bytes === null) return 0;
      const [start, end] = new BigInt64Array(bytes.buffer);
      return Number(end - start) * 1e-9;
    }

    handOver(after, description = {}) {
      if (this.lost || (!this.pending.length && !after)) return;
      const encoder = this.device.createCommandEncoder();
      if (this.pending.length) {
        const pass = encoder.beginComputePass(description);
        for (const [pipeline, bindings, x, y, z] of this.pending) {
          pass.setPipeline(pipeline);
          pass.setBindGroup(0, bindings);
          pass.dispatchWorkgroups(x, y, z);
        }
        pass.end();
      }
      this.pending = [];
      after?.(encoder);
      this.device.queue.submit([encoder.finish()]);
      const progress = () => {
        this.progress = performance.now();
      };
      this.device.queue.onSubmittedWorkDone().then(progress, () => {});
    }

    /** What work comes to, as long as some of what was handed over is done now and then; null where
     * the GPU is lost. */
    async inTime(work) {
      const patience = this.patience * 1e3;
      this.progress = performance.now();
      const failed = () => {
        this.lost ||= "The GPU was lost while it worked.";
      };
      const settled = Promise.race([work.catch(failed), this.gone]);
      let outcome = LATE;
      while (outcome === LATE && performance.now() - this.progress < patience)
        outcome = await within(patience / 10, settled);
      if (outcome === LATE) this.giveUp();
      return this.lost ? null : outcome;
    }

    giveUp() {
      this.lost ||=
        `The GPU was given up after ${this.patience} s without a result; a loop may have no ` +
        "end, or the work be too much for one launch.";
      const { device } = this;
      working.add(device);
      const end = () => {
        device.destroy();
        working.delete(device);
      };
      device.queue.onSubmittedWorkDone().then(end, end);
    }
  }

  async function openPreferred(limits, features, patience) {
    if (!navigator.gpu) throw new Error("this browser has no WebGPU");
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) throw new Error("this browser offers no GPU");
    const device = await adapter.requestDevice({
      requiredFeatures: features.filter((name) => adapter.features.has(name)),
      requiredLimits: Object.fromEntries(limits.map((name) => [name, adapter.limits[name]])),
    });
    return new Gpu(device, adapter, limits, patience);
  }

  /** An opening that took too long, and goes on. */
  let late = null;

  return {
    /** The GPU that the browser prefers, with the highest limits that it has; else an error. Who
     * asks again after a TimeoutError waits for the same answer, and not as long. */
    async open(limits, features, patience) {
      const opening = late ?? openPreferred(limits, features, patience);
      const seconds = late ? patience / 10 : patience;
      late = null;
      const gpu = await within(seconds * 1e3, opening);
      if (gpu !== LATE) return gpu;
      late = opening;
      late.catch(() => undefined);
      const error = new Error(`this browser's GPU has not answered for ${seconds} s`);
      throw Object.assign(error, { name: "TimeoutError" });
    },
  };
})();
