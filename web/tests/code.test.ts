import { describe, expect, it } from "vitest";
import { Links, ranges } from "../src/views/code/links";
import { axes, peakOf, roof, sentence } from "../src/views/code/roofline";
import { short, timing } from "../src/views/format";
import { logTicks as ticks } from "../src/views/plot";

/** Line 2 of the TensorIR is a loop, 4 its update in the block whose head is 3. */
const code = {
  tensorir: { lines: ["def", "for", "block", "update"], standsFor: [[], [2], [4], [4]] },
  lowered: { lines: ["for", "a", "b"], origins: [[2], [4], [4]] },
  wat: { lines: ["(module", "loop", "mul", "mul", ")"], origins: [[], [1], [2], [3], []] },
};
const lit = (links: Links, pane: "tensorir" | "lowered" | "wat", line: number): number[][] => {
  const { tensorir, lowered, wat } = links.from(pane, line);
  return [[...tensorir], [...lowered], [...wat]];
};

describe("links between texts", () => {
  const links = new Links(code);

  it("go from TensorIR down to instructions", () => {
    expect(lit(links, "tensorir", 4)).toEqual([[4], [2, 3], [3, 4]]);
  });

  it("take a block's head for the code in it", () => {
    expect(lit(links, "tensorir", 3)).toEqual([
      [3, 4],
      [2, 3],
      [3, 4],
    ]);
  });

  it("go from one instruction up to its own line of the loops", () => {
    expect(lit(links, "wat", 4)).toEqual([[4], [3], [4]]);
    expect(lit(links, "wat", 1)).toEqual([[], [], [1]]);
  });

  it("go from a line of the loops both ways", () => {
    expect(lit(links, "lowered", 1)).toEqual([[2], [1], [2]]);
  });

  it("go by the TensorIR where other loops are shown", () => {
    const after = new Links(code, [[2], [4]]);
    expect(lit(after, "wat", 4)).toEqual([[4], [2], [4]]);
    expect(lit(after, "lowered", 2)).toEqual([[4], [2], [3, 4]]);
  });

  it("know where a line comes from in the first place", () => {
    expect([
      links.origin("tensorir", 3),
      links.origin("lowered", 3),
      links.origin("wat", 2),
    ]).toEqual([3, 4, 2]);
    expect(links.origin("wat", 5)).toBeNull();
  });
});

describe("ranges", () => {
  it("join what follows each other", () => {
    expect(ranges([7, 1, 2, 3, 9, 8])).toEqual([
      [1, 3],
      [7, 9],
    ]);
    expect(ranges([])).toEqual([]);
  });
});

describe("roofline", () => {
  const peak = {
    dtype: "float32",
    flops: 40e9,
    fusedFlops: 60e9,
    memoryBandwidth: 20e9,
    cacheBandwidth: 100e9,
  };

  it("is what arithmetic or memory allows, whichever is less", () => {
    expect(roof(0.5, 20e9, 40e9)).toBe(10e9);
    expect(roof(10, 20e9, 40e9)).toBe(40e9);
  });

  it("compares with the peak of what the code uses", () => {
    expect(peakOf({ peak, fused: true })).toBe(60e9);
    expect(peakOf({ peak, fused: false })).toBe(40e9);
    expect(peakOf({ peak: { ...peak, fusedFlops: null }, fused: true })).toBe(40e9);
  });

  it.each([
    [0.08, 1e9],
    [21, 30e9],
    [500, 50e9],
    [0.001, 1e6],
  ])("has room for %d operations a byte", (intensity, rate) => {
    const { x, y } = axes({ intensity, rate }, peak);
    expect(x[0]).toBeLessThan(intensity);
    expect(x[1]).toBeGreaterThan(intensity);
    expect(y[0]).toBeLessThan(rate);
    expect(y[1]).toBeGreaterThan(60e9);
    expect(ticks(x).length).toBeGreaterThan(1);
    expect(ticks(x).length).toBeLessThan(12);
  });

  it("says what was measured", () => {
    const measurement = {
      seconds: 1e-3,
      repeats: [1e-3],
      operations: 30e6,
      bytes: 1e6,
      rate: 30e9,
      fused: true,
      peak,
      call: 1e-6,
      clockStep: 5e-6,
      isolated: true,
    };
    expect(sentence("main", measurement)).toBe(
      "main takes 1 ms: 30 GFLOPS, 50 % of the peak of 60 GFLOPS.",
    );
    expect(sentence("copy", { ...measurement, operations: 0, rate: 0 })).toBe(
      "copy takes 1 ms and does no arithmetic.",
    );
    expect(sentence("small", { ...measurement, seconds: 1.5e-6, operations: 0 })).toBe(
      "small takes 1.5 µs and does no arithmetic. Most of that is the call itself (1 µs).",
    );
  });
});

describe("numbers", () => {
  it("have three digits and a fitting unit", () => {
    expect([short(1234.5), short(12.345), short(0.012)]).toEqual(["1235", "12.3", "0.012"]);
    expect([timing(2), timing(1.5e-3), timing(84.24e-6), timing(7e-7)]).toEqual([
      "2 s",
      "1.5 ms",
      "84.2 µs",
      "700 ns",
    ]);
  });
});
