import { describe, expect, it } from "vitest";
import { logRange } from "../src/views/search/scale";

describe("logRange", () => {
  it("starts at one significant digit, below all values and not far", () => {
    for (let low = 1e-4; low < 5e4; low *= 1.0173) {
      const [start, end] = logRange(low, low * 3);
      expect(start.toExponential()).toMatch(/^[1-9]e/);
      expect(start).toBeLessThanOrEqual(low);
      expect(start).toBeGreaterThan(low / 3.3);
      expect(end).toBeGreaterThan(low * 3);
    }
  });

  it("has a range without values", () => {
    expect(logRange(null, null)).toEqual([0.1, 10]);
    expect(logRange(0, 1)).toEqual([0.1, 10]);
  });
});
