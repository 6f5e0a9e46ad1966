import { Text } from "@codemirror/state";
import { expect, test } from "vitest";
import { toMark } from "../src/program/editor";
import { comparison, duration, timing } from "../src/views/format";
import type { Trial } from "../src/views/search/trials";
import { bestOf, outcome } from "../src/views/search/trials";

const doc = Text.of(["first", "", "  third = 1"]);

function at(line: number, column: number, endLine: number, endColumn: number): [number, number] {
  const { from, to } = toMark(doc, {
    line,
    column,
    endLine,
    endColumn,
    message: "",
    severity: "error",
    fix: null,
  });
  return [from, to];
}

test("diagnostics become ranges of the text", () => {
  expect(at(1, 1, 1, 3)).toEqual([1, 3]);
  expect(at(1, 4, 3, 2)).toEqual([4, 9]);
});

test("a diagnostic outside the text is clipped to it", () => {
  expect(at(9, 0, 9, 5)).toEqual([7, 12]);
  expect(at(3, 2, 3, 999)).toEqual([9, 18]);
});

test("an empty range covers a character where its line has one", () => {
  expect(at(1, 2, 1, 2)).toEqual([2, 3]);
  expect(at(1, 5, 1, 5)).toEqual([4, 5]);
  expect(at(2, 0, 2, 0)).toEqual([6, 6]);
});

test("times keep three significant digits", () => {
  expect([0.1234, 0.0123, 0.00123, 0.000123, 0.00000456].map(timing)).toEqual([
    "123 ms",
    "12.3 ms",
    "1.23 ms",
    "123 µs",
    "4.56 µs",
  ]);
  expect(duration(61_000)).toBe("1 min 1 s");
});

test("comparison says in which direction", () => {
  expect(comparison(1, 2.5)).toBe("2.5× faster");
  expect(comparison(30, 1)).toBe("30× slower");
  expect(comparison(1, 1.04)).toBe("as fast");
  expect(comparison(1.04, 1)).toBe("as fast");
});

function trial(index: number, seconds: number | null, state: Trial["state"] = "measured"): Trial {
  const nothing = {
    reason: null,
    sameAs: null,
    decisions: [],
    confirmed: false,
    space: 0,
    predicted: null,
    round: 0,
    at: 0,
  };
  return { index, state, seconds, ...nothing };
}

test("the best trial is the fastest, and failed trials are none", () => {
  const trials = [trial(0, null, "failed"), trial(1, 2), trial(2, 1), trial(3, 1, "repeated")];
  expect(bestOf(trials)?.index).toBe(2);
  expect(bestOf([trial(0, null, "failed")])).toBeNull();
  expect(outcome(4, trials)).toBe("4 trials, 1 of them duplicates, 1 failed");
});
