import { describe, expect, it } from "vitest";
import type { AccessSite } from "../src/python/wire";
import { frame, layout } from "../src/views/access/grid";
import { Replay } from "../src/views/access/replay";
import { badgeText, hitsOf, indices, iterationsOf } from "../src/views/access/report";
import { accessSentence } from "../src/views/access/tables";
import { percent as rate, bytes as size } from "../src/views/format";

/** Two buffers of 2×4 floats; a line holds four, and the cache holds one line. */
const buffers = [
  { name: "A", dtype: "float32", shape: [2, 4], itemBytes: 4, base: 0, parameter: true },
  { name: "B", dtype: "float32", shape: [2, 4], itemBytes: 4, base: 64, parameter: true },
];
const loops = [
  { name: "i", low: 0, extent: 2 },
  { name: "j", low: 1, extent: 4 },
];
const site = (buffer: number, write: boolean): AccessSite => ({
  buffer,
  write,
  text: "",
  line: 1,
  loops,
  badge: "unit",
  loop: "j",
});

function replay(): Replay {
  const accesses = {
    count: 5,
    site: new Uint16Array([0, 0, 1, 1, 0]),
    element: new Uint32Array([0, 1, 4, 5, 0]),
    point: new Float64Array([0, 1, 1, 2, 5]),
  };
  const hits = {
    hit: new Uint8Array([0, 1, 0, 1, 0]),
    evicted: new Int32Array([-1, -1, 0, -1, 5]),
  };
  return new Replay(buffers, [site(0, false), site(1, true)], accesses, hits, 16);
}

describe("the replay of accesses", () => {
  it("knows what was touched and which lines are held", () => {
    const run = replay();
    run.goTo(2);
    expect([...run.last[0]!]).toEqual([1, 2, 0, 0, 0, 0, 0, 0]);
    expect(run.counts).toEqual([
      { hits: 1, misses: 1 },
      { hits: 0, misses: 0 },
    ]);
    expect([0, 3, 4].map((element) => run.holds(0, element))).toEqual([true, true, false]);
    run.goTo(3);
    expect(run.holds(0, 0)).toBe(false);
    expect([3, 4, 7].map((element) => run.holds(1, element))).toEqual([false, true, true]);
  });

  it("goes back to the same state", () => {
    const [there, back] = [replay(), replay()];
    there.goTo(3);
    back.goTo(5);
    back.goTo(3);
    expect(back.last).toEqual(there.last);
    expect(back.counts).toEqual(there.counts);
    expect(back.holds(1, 4)).toBe(true);
  });

  it("stays within the run", () => {
    const run = replay();
    run.goTo(99);
    expect(run.position).toBe(5);
    run.goTo(-3);
    expect(run.position).toBe(0);
  });

  it("finds the next miss", () => {
    const run = replay();
    const found = [];
    while (run.position < run.count) {
      run.goTo(run.nextMiss());
      found.push(run.position);
    }
    expect(found).toEqual([1, 3, 5]);
  });

  it("is told in sentences", () => {
    const run = replay();
    expect(accessSentence(run)).toBe("Nothing is touched yet; 5 accesses follow.");
    run.goTo(3);
    expect(accessSentence(run)).toBe(
      "Access 3 of 5: writes B[1, 0] at i=0, j=2: a miss; line 5 is fetched, line 0 is evicted.",
    );
    run.goTo(4);
    expect(accessSentence(run)).toBe("Access 4 of 5: writes B[1, 1] at i=0, j=3: a hit in line 5.");
  });
});

describe("numbers of an access", () => {
  it("become indices", () => {
    expect(indices([2, 3, 4], 23)).toEqual([1, 2, 3]);
    expect(indices([], 0)).toEqual([]);
  });

  it("become iterations of loops", () => {
    expect(iterationsOf(loops, 6)).toEqual([
      ["i", 1],
      ["j", 3],
    ]);
  });

  it("come packed", () => {
    const packed = (values: ArrayBufferView): string =>
      Buffer.from(values.buffer).toString("base64");
    const { hit, evicted } = hitsOf({
      hit: packed(new Uint8Array([1, 0])),
      evicted: packed(new Int32Array([-1, 7])),
    } as never);
    expect([[...hit], [...evicted]]).toEqual([
      [1, 0],
      [-1, 7],
    ]);
  });
});

describe("a buffer's grid", () => {
  it("has the last dimension across", () => {
    expect(layout([2, 3, 4])).toEqual({ rows: 6, columns: 4, slice: 3 });
    expect(layout([5])).toEqual({ rows: 1, columns: 5, slice: 1 });
    expect(layout([100])).toEqual({ rows: 4, columns: 32, slice: 4 });
    expect(layout([])).toEqual({ rows: 1, columns: 1, slice: 1 });
  });

  it("is the part that is touched where the buffer is large", () => {
    expect(frame([16, 16], [])).toEqual({
      row: 0,
      rows: 16,
      column: 0,
      columns: 16,
      width: 16,
      slice: 16,
    });
    expect(frame([1000, 1000], [2003, 4005])).toEqual({
      row: 2,
      rows: 3,
      column: 3,
      columns: 3,
      width: 1000,
      slice: 3,
    });
    expect(frame([1000, 1000], [0, 999_999])).toMatchObject({
      row: 0,
      rows: 256,
      column: 0,
      columns: 256,
    });
    expect(frame([1000, 1000], [])).toMatchObject({ rows: 1, columns: 1 });
  });
});

describe("figures", () => {
  it("are rates of which only all is 100 %", () => {
    expect([rate(0, 0), rate(3, 4), rate(9999, 10_000), rate(7, 7)]).toEqual([
      "–",
      "75 %",
      "99.9 %",
      "100 %",
    ]);
  });

  it("are bytes with units", () => {
    expect([size(512), size(1024), size(142_336), size(3 * 1024 ** 2)]).toEqual([
      "512 B",
      "1 KiB",
      "139 KiB",
      "3 MiB",
    ]);
  });

  it("are strides with their loop", () => {
    expect(badgeText({ badge: "stride 16", loop: "k" })).toBe("stride 16 in k");
    expect(badgeText({ badge: "once", loop: null })).toBe("once");
  });
});
