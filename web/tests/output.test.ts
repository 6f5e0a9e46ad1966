import { expect, test } from "vitest";
import { countLines, OutputBatcher } from "../src/python/output";
import type { OutputChunk } from "../src/python/protocol";

function batcher(): { clock: { now: number }; posts: OutputChunk[][]; output: OutputBatcher } {
  const clock = { now: 0 };
  const posts: OutputChunk[][] = [];
  return {
    clock,
    posts,
    output: new OutputBatcher(
      (chunks) => posts.push(chunks),
      () => clock.now,
    ),
  };
}

test("single prints are posted at once, in order", () => {
  const { posts, output } = batcher();
  output.write("stdout", "a\n");
  output.write("stderr", "b\n");
  expect(posts.flat().map(({ stream, text }) => [stream, text])).toEqual([
    ["stdout", "a\n"],
    ["stderr", "b\n"],
  ]);
});

test("a flood is posted at most sixty times a second after the first burst", () => {
  const { clock, posts, output } = batcher();
  for (let i = 0; i < 10_000; i += 1) {
    clock.now = i / 10; // one second in all
    output.write("stdout", `${i}\n`);
  }
  expect(posts.length).toBeGreaterThan(60);
  expect(posts.length).toBeLessThanOrEqual(40 + 60 + 1);
  output.flush();
  const text = posts
    .flat()
    .map((chunk) => chunk.text)
    .join("");
  expect(countLines(text)).toBe(10_000);
});

test("what does not fit is dropped from the front, by whole lines, and counted", () => {
  const { posts, output } = batcher();
  for (let i = 0; i < 40; i += 1) output.write("stdout", "-\n"); // uses up the burst
  posts.length = 0;
  const total = 100_000;
  for (let i = 0; i < total; i += 1) output.write("stdout", `${String(i).padStart(9, "0")}\n`);
  output.flush();
  const chunks = posts.flat();
  const lines = chunks
    .map((chunk) => chunk.text)
    .join("")
    .trimEnd()
    .split("\n");
  const dropped = chunks.reduce((sum, chunk) => sum + chunk.dropped, 0);
  expect(lines.at(-1)).toBe("000099999");
  expect(lines[0]).toMatch(/^\d{9}$/);
  expect(lines.length + dropped).toBe(total);
  expect(lines.length * 10).toBeLessThanOrEqual(128_000);
});

test("one endless line is cut too", () => {
  const { posts, output } = batcher();
  for (let i = 0; i < 41; i += 1) output.write("stdout", "");
  for (let i = 0; i < 400; i += 1) output.write("stdout", "x".repeat(1000));
  output.flush();
  expect(posts.flat().reduce((sum, chunk) => sum + chunk.text.length, 0)).toBeLessThanOrEqual(
    170_000,
  );
});

test("a picture stands between the texts before and after it", () => {
  const { posts, output } = batcher();
  const picture = { url: "data:image/png;base64,", width: 2, height: 1, description: "a figure" };
  for (let i = 0; i < 41; i += 1) output.write("stdout", "");
  posts.length = 0;
  output.write("stdout", "before");
  output.picture(picture);
  output.write("stdout", "after");
  output.flush();
  expect(posts.flat().map((chunk) => chunk.picture ?? chunk.text)).toEqual([
    "before",
    picture,
    "after",
  ]);
});
