import { describe, expect, it } from "vitest";
import type { GpuKernel, GpuLanes, GpuSite } from "../src/python/wire";
import { threadIndex } from "../src/views/gpu/fetch";
import { lanesBy, laneText } from "../src/views/gpu/lanes";
import { intensities } from "../src/views/gpu/occupancy";
import { costText } from "../src/views/gpu/table";
import { dearest } from "../src/views/gpu/view";

function lanes(address: (lane: number) => number | null, bytes = 4): GpuLanes {
  const addresses = Array.from({ length: 32 }, (_, lane) => address(lane));
  return { bytes, addresses, sentence: "" };
}

function site(shared: boolean, least: number, most: number, all = most): GpuSite {
  const cost = {
    requests: 1,
    active: 32,
    sectors: shared ? 0 : all,
    passes: shared ? all : 0,
    ideal: 1,
    least,
    most,
    exact: true,
  };
  return {
    buffer: "A",
    kind: "load",
    shared,
    text: "A[i]",
    index: "threadIdx.x",
    line: 1,
    cost,
    note: "",
  };
}

describe("lanes and memory", () => {
  it("puts lanes that follow each other into four sectors of a line", () => {
    expect([
      ...lanesBy(
        lanes((lane) => 4 * lane),
        32,
      ).keys(),
    ]).toEqual([0, 1, 2, 3]);
    expect([
      ...lanesBy(
        lanes((lane) => 4 * lane),
        128,
      ).keys(),
    ]).toEqual([0]);
    expect([
      ...lanesBy(
        lanes((lane) => 4 * lane + 4),
        32,
      ).keys(),
    ]).toEqual([0, 1, 2, 3, 4]);
  });

  it("has a sector for each lane of a column", () => {
    const sectors = lanesBy(
      lanes((lane) => 512 * lane),
      32,
    );
    expect(sectors.size).toBe(32);
    expect(sectors.get(16)).toEqual([1]);
  });

  it("knows all words of a wide access, and none of a lane that takes no part", () => {
    const words = lanesBy(
      lanes((lane) => (lane < 2 ? 16 * lane : null), 16),
      4,
    );
    expect([...words.entries()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((w) => [w, [w < 4 ? 0 : 1]]));
  });

  it("names the lanes that share a word", () => {
    expect(laneText([3])).toBe("3");
    expect(laneText([0, 1, 2, 3])).toBe("0–3");
    expect(laneText([0, 8, 16])).toBe("0…");
  });
});

describe("costs", () => {
  it("says what one request costs", () => {
    expect(costText(site(false, 4, 4))).toBe("4 transactions");
    expect(costText(site(false, 4, 5))).toBe("4–5 transactions");
    expect(costText(site(false, 1, 1))).toBe("1 transaction");
    expect(costText(site(true, 1, 1))).toBe("no conflict");
    expect(costText(site(true, 32, 32))).toBe("32-way conflict");
  });

  it("begins at the access that wastes most", () => {
    expect(dearest([site(false, 4, 4), site(false, 32, 32), site(true, 1, 1)])).toBe(1);
    expect(dearest([site(true, 1, 1, 1), site(false, 1, 1)])).toBe(1);
    expect(dearest([])).toBe(0);
  });

  it("has an intensity with and without a cache", () => {
    const kernel = { operations: 1000, argumentBytes: 100, movedBytes: 500 } as GpuKernel;
    expect(intensities(kernel)).toEqual({ best: 10, moved: 2 });
    expect(intensities({ ...kernel, operations: null })).toBeNull();
  });
});

describe("threads", () => {
  it("are counted along x, then y, then z", () => {
    expect(threadIndex(33, [32, 8, 1])).toBe("(1, 1)");
    expect(threadIndex(300, [32, 8, 2])).toBe("(12, 1, 1)");
  });
});
