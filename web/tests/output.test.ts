import { expect, test } from "vitest";
import { Backlog } from "../src/python/backlog";
import {
  addTo,
  BoundedOutput,
  countOf,
  describeDropped,
  displayed,
  partsOf,
} from "../src/python/bounded";
import type { Dropped, OutputChunk } from "../src/python/messages";
import { OutputBatcher } from "../src/python/output";
import { pixelsOf } from "../src/python/png";

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

const textOf = (chunks: OutputChunk[]): string => chunks.map(({ text }) => text).join("");

function droppedIn(chunks: OutputChunk[]): Dropped {
  const sum: Dropped = { lines: 0, characters: 0 };
  for (const { dropped } of chunks) addTo(sum, dropped);
  return sum;
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
  output.wait = () => true;
  for (let i = 0; i < 10_000; i += 1) {
    clock.now = i / 10; // one second in all
    output.write("stdout", `${i}\n`);
  }
  expect(posts.length).toBeGreaterThan(60);
  expect(posts.length).toBeLessThanOrEqual(40 + 60 + 1);
  output.flush();
  expect(countOf({ stream: "stdout", text: textOf(posts.flat()) }).lines).toBe(10_000);
});

test("what does not fit is dropped from the front, by whole lines, and counted", () => {
  const { posts, output } = batcher();
  for (let i = 0; i < 40; i += 1) output.write("stdout", "-\n"); // uses up the burst
  posts.length = 0;
  const total = 100_000;
  for (let i = 0; i < total; i += 1) output.write("stdout", `${String(i).padStart(9, "0")}\n`);
  output.flush();
  const chunks = posts.flat();
  const lines = textOf(chunks).trimEnd().split("\n");
  const dropped = droppedIn(chunks);
  expect(lines.at(-1)).toBe("000099999");
  expect(lines[0]).toMatch(/^\d{9}$/);
  expect(lines.length + dropped.lines).toBe(total);
  expect(lines.length * 10 + dropped.characters).toBe(total * 10);
  expect(lines.length * 10).toBeLessThanOrEqual(64_000);
});

test("one endless line is cut too, and its characters are counted", () => {
  const { posts, output } = batcher();
  for (let i = 0; i < 40; i += 1) output.write("stdout", "-");
  posts.length = 0;
  for (let i = 0; i < 4000; i += 1) output.write("stdout", "x".repeat(1000));
  output.flush();
  const chunks = posts.flat();
  expect(textOf(chunks).length).toBeLessThanOrEqual(64_000);
  expect(textOf(chunks).length + droppedIn(chunks).characters).toBe(4_000_000);
});

test("one text of any length goes in pieces, none of them larger than what is kept", () => {
  const { posts, output } = batcher();
  output.wait = () => true;
  output.write("stdout", "x".repeat(1_000_000));
  output.flush();
  expect(textOf(posts.flat()).length).toBe(1_000_000);
  for (const chunks of posts) expect(textOf(chunks).length).toBeLessThanOrEqual(64_000);
});

test("a flood waits for the page and loses nothing", () => {
  const { posts, output } = batcher();
  let seen = 0;
  let waits = 0;
  const backlog = (): number => textOf(posts.slice(seen).flat()).length;
  output.wait = (blocking) => {
    if (blocking && backlog() > 32_000) {
      waits += 1;
      seen = posts.length; // the page has drawn
    }
    return backlog() <= 32_000;
  };
  let most = 0;
  for (let i = 0; i < 10_000; i += 1) {
    output.write("stdout", "x".repeat(100));
    most = Math.max(most, backlog());
  }
  output.flush();
  expect(waits).toBeGreaterThan(10);
  expect(most).toBeLessThanOrEqual(96_000);
  expect(textOf(posts.flat()).length).toBe(1_000_000);
});

test("where the page is waited for in vain, the oldest is dropped", () => {
  const { posts, output } = batcher();
  output.wait = () => false;
  for (let i = 0; i < 10_000; i += 1) output.write("stdout", "x".repeat(100));
  expect(posts).toEqual([]);
  output.flush();
  expect(textOf(posts.flat()).length).toBeLessThanOrEqual(64_000);
});

test("the backlog is what was sent and not yet seen; a stop ends the wait for it", () => {
  const memory = new SharedArrayBuffer(4);
  const [worker, page] = [new Backlog(memory), new Backlog(memory)];
  worker.add(100);
  expect(worker.wait(50, () => true)).toBe(false);
  page.remove(60);
  expect(worker.wait(50, () => false)).toBe(true);
});

test("a picture stands between the texts before and after it", () => {
  const { posts, output } = batcher();
  const picture = { url: "data:image/png;base64,", width: 2, height: 1, description: "a figure" };
  for (let i = 0; i < 40; i += 1) output.write("stdout", "-");
  posts.length = 0;
  output.write("stdout", "before");
  output.show({ picture });
  output.write("stdout", "after");
  output.flush();
  expect(posts.flat().map((chunk) => chunk.picture ?? chunk.text)).toEqual([
    "before",
    picture,
    "after",
  ]);
});

test("pictures and pages of HTML are bounded, whatever they say of themselves", () => {
  const output = new BoundedOutput(50_000);
  const page = { stream: "stdout", text: "", html: "<b>bold</b>" } as const;
  for (let i = 0; i < 100; i += 1) output.add(page);
  const left = output.chunks.length;
  expect(left).toBeGreaterThanOrEqual(10);
  expect(left).toBeLessThanOrEqual(20);
  expect(droppedIn(output.chunks)).toEqual({
    lines: 0,
    characters: (100 - left) * 5000,
    pages: 100 - left,
  });
  output.add({ ...page, html: "x".repeat(1_500_000) });
  expect(output.chunks.map(({ html }) => html)).toEqual([undefined]);
  expect(droppedIn(output.chunks).characters).toBe(100 * 5000 + 150_000);
  const picture = { url: "", width: 0, height: -1e9, description: "" };
  expect(countOf({ stream: "stdout", text: "", picture })).toEqual({
    lines: 0,
    characters: 1000,
    pictures: 1,
  });
  const huge = { ...picture, url: png(8000, 4000) };
  expect(countOf({ stream: "stdout", text: "", picture: huge }).characters).toBe(32_000);
});

/** The start of a PNG file of that size. */
function png(width: number, height: number): string {
  const header = [width, height].flatMap((size) => [24, 16, 8, 0].map((at) => (size >>> at) & 255));
  const start = `\x89PNG\r\n\x1a\n\0\0\0\rIHDR${String.fromCharCode(...header)}\x08\x02`;
  return `data:image/png;base64,${btoa(start)}`;
}

test("the pixels of a picture are those of its file", () => {
  expect(pixelsOf(png(640, 480))).toBe(307_200);
  expect(pixelsOf(png(4e9, 4e9))).toBe(16e18);
  const others = [
    "",
    "data:image/png;base64,",
    "data:image/png;base64,!!!!",
    png(1, 2).slice(0, 40),
  ];
  for (const url of [...others, `data:image/png;base64,${btoa("GIF89a".repeat(9))}`])
    expect(pixelsOf(url)).toBeNull();
  expect(pixelsOf(png(1, 2).replace("image/png", "text/html"))).toBeNull();
});

test("a long text is shown in parts, so that not all of it goes at once", () => {
  const text = `${"-".repeat(25_000)}\n${"line\n".repeat(5000)}the end`;
  const parts = partsOf(text);
  expect(parts.join("")).toBe(text);
  expect(Math.max(...parts.map((part) => part.length))).toBe(10_000);
  expect(parts.slice(2, -1).every((part) => part.endsWith("\n"))).toBe(true);
  expect(partsOf("")).toEqual([]);
});

test.each([
  [["\r  1%", "\r  2%", "\r100%\n", "done"], "100%\ndone"],
  [["a\n", "1%\r", "2%\r", "3%"], "a\n3%"],
  [["one\r\n", "two\r\n"], "one\ntwo\n"],
  [["a\rb\rc\nd\re\nf"], "c\ne\nf"],
  [["abc\n", "\n\r"], "abc\n\n"],
])("a carriage return begins the line again: %j", (texts, shown) => {
  const output = new BoundedOutput(2000);
  for (const text of texts) output.add({ stream: "stdout", text });
  output.add({ stream: "stdout", text: "" });
  expect(displayed(output.chunks.map(({ text }) => text).join(""))).toBe(shown);
  expect(output.size).toBe(output.chunks.reduce((sum, { text }) => sum + text.length, 0));
});

test("a line that begins again and again stays one line", () => {
  const output = new BoundedOutput(2000);
  for (let i = 0; i < 10_000; i += 1) output.add({ stream: "stdout", text: `\r${i} ####` });
  expect(output.chunks.map(({ text, dropped }) => [text, dropped])).toEqual([
    ["\r9999 ####", undefined],
  ]);
});

test("bounded output says of pictures and lines how many went", () => {
  const output = new BoundedOutput(2000);
  const picture = { url: "", width: 10, height: 400, description: "" };
  output.add({ stream: "stdout", text: "", picture });
  for (let i = 0; i < 5; i += 1) output.add({ stream: "stdout", text: `${"y".repeat(999)}\n` });
  expect(describeDropped(droppedIn(output.chunks))).toBe(
    "… 2 earlier lines and 1 picture were dropped",
  );
  expect(describeDropped({ lines: 0, characters: 12_345 })).toBe(
    "… 12,345 earlier characters were dropped",
  );
  expect(describeDropped({ lines: 1, characters: 9000, pictures: 2, pages: 1200 })).toBe(
    "… 1 earlier line, 2 pictures and 1,200 pages of HTML were dropped",
  );
  expect(describeDropped({ lines: 0, characters: 5000, pages: 1 })).toBe(
    "… 1 earlier page of HTML was dropped",
  );
  expect(describeDropped({ lines: 0, characters: 0 })).toBe("");
});
