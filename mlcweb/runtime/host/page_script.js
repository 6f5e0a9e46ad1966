/*
 * The JavaScript half of the host in a page: what cannot be done, or not fast, from Python.
 *
 * `timer` implements the measuring protocol. A browser first runs a kernel as translated in haste and
 * replaces the code, while it runs, by better one made in another thread; no running call is replaced.
 * So the first time is preceded by at least two calls, and by batches until two that follow each other
 * agree. A batch is long against the step of the clock, which is measured. All lasts long enough for
 * the compiler to finish beside it: it was seen to take 1 to 5 ms, also for 14 KB of code.
 *
 * A page that forbids functions made of text imports this file; elsewhere Python runs its text.
 */

export default (() => {
  const AGREEMENT = 0.03;
  const STEPS_PER_BATCH = 200;
  // Milliseconds.
  const WARM_UP = { batch: 5, least: 20, longest: 400 };

  let knownStep;
  function clockStep() {
    if (knownStep === undefined) {
      knownStep = Infinity;
      let before = performance.now();
      for (let changes = 0; changes < 20; ) {
        const now = performance.now();
        if (now === before) continue;
        knownStep = Math.min(knownStep, now - before);
        before = now;
        changes += 1;
      }
    }
    return knownStep;
  }

  function timeBatch(repeat, number, values) {
    const start = performance.now();
    repeat(number, ...values);
    return performance.now() - start;
  }

  function warmUp(repeat, values, { batch, least, longest }) {
    const shortest = Math.max(batch, STEPS_PER_BATCH * clockStep());
    const start = performance.now();
    let number = 1;
    let before = NaN;
    timeBatch(repeat, 1, values);
    for (;;) {
      const time = timeBatch(repeat, number, values);
      const elapsed = performance.now() - start;
      if (elapsed > longest) return;
      if (time < shortest) {
        number = Math.ceil(number * Math.min(16, Math.max(1.5, (1.2 * shortest) / time)));
        before = NaN;
        continue;
      }
      const perCall = time / number;
      if (elapsed > least && Math.abs(perCall - before) <= AGREEMENT * before) return;
      before = perCall;
    }
  }

  return {
    memory(shared, maximum) {
      // Some systems do not set so many addresses aside; a module takes less than it asks for.
      for (let pages = maximum; ; pages >>= 1) {
        try {
          return new WebAssembly.Memory({ initial: 1, maximum: pages, shared });
        } catch (error) {
          if (pages === 1) throw error;
        }
      }
    },

    bytes: (memory, address, length) => new Uint8Array(memory.buffer, address, length),

    // Functions that give 64 bits give a BigInt, which Python makes of large numbers only. `launch`
    // runs parallel loops, where there are any.
    instantiate(memory, code, functions, wide, launch) {
      const module = new WebAssembly.Module(code);
      const python = functions.map((run, index) =>
        wide[index] ? (...values) => BigInt(run(...values)) : (...values) => run(...values),
      );
      const parallel = { launch: (...loop) => launch(exports, ...loop) };
      const { exports } = new WebAssembly.Instance(module, { env: { memory }, python, parallel });
      return exports;
    },

    // Parameters of 64 bits take a BigInt, which Python makes of large numbers only.
    withWide: (run, wide) => (...values) => {
      for (const index of wide) values[index] = BigInt(values[index]);
      return run(...values);
    },

    // Numbers that are written out are passed faster than those of an array.
    bind(run, values) {
      const [a, b, c, d] = values;
      if (values.length === 2) return () => run(a, b);
      if (values.length === 3) return () => run(a, b, c);
      if (values.length === 4) return () => run(a, b, c, d);
      return () => run(...values);
    },

    // Functions without arguments as one. After one has thrown, `reached` tells which.
    chain(runs) {
      let at = 0;
      const run = () => {
        for (at = 0; at < runs.length; at += 1) runs[at]();
      };
      return { run, reached: () => at };
    },

    timer(repeat, limits = WARM_UP) {
      let warm = false;
      return (number, ...values) => {
        if (number < 1) return 0;
        if (!warm) warmUp(repeat, values, limits);
        warm = true;
        return timeBatch(repeat, number, values) * 1e-3;
      };
    },
  };
})();
