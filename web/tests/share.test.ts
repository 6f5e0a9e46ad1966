import { describe, expect, it } from "vitest";
import { hashParts } from "../src/share/address";
import { BadLink, decode, encode, type SharedState } from "../src/share/state";

const state: SharedState = {
  version: 1,
  files: [
    { name: "lesson.py", text: "print('für alle: ½ 日本')\n" },
    { name: "helper.py", text: "x = 1\n" },
  ],
  open: "helper.py",
  view: "trace",
  views: { search: { trials: 20 } },
};

async function packed(value: unknown): Promise<string> {
  return encode(value as SharedState);
}

describe("a link", () => {
  it("brings back what it was made from", async () => {
    expect(await decode(await encode(state))).toEqual(state);
  });

  it("is short: repeated text is packed", async () => {
    const long = {
      ...state,
      files: [{ name: "a.py", text: "with T.block('C'):\n".repeat(500) }],
      open: "a.py",
    };
    expect((await encode(long)).length).toBeLessThan(300);
  });

  it("has only characters that an address may hold as they are", async () => {
    expect(await encode(state)).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  it("that was cut is refused with a reason", async () => {
    const code = await encode(state);
    await expect(decode(code.slice(0, code.length / 2))).rejects.toThrow(BadLink);
    await expect(decode("!!!")).rejects.toThrow(/damaged/);
  });

  it("of a later version asks for a reload", async () => {
    await expect(decode(await packed({ ...state, version: 9 }))).rejects.toThrow(/later version/);
  });

  it("without a program is refused", async () => {
    for (const nothing of [
      null,
      1,
      {},
      { version: 1, files: [] },
      { version: 1, files: [{ name: 1 }] },
    ]) {
      await expect(decode(await packed(nothing))).rejects.toThrow(BadLink);
    }
  });

  it("that unpacks to millions of characters is refused", async () => {
    const bomb = { ...state, files: [{ name: "a.py", text: " ".repeat(3_000_000) }] };
    await expect(decode(await packed(bomb))).rejects.toThrow(/more text/);
  });

  it("takes over nothing that it does not know", async () => {
    const odd = {
      ...state,
      run: true,
      files: [{ name: "a.py", text: "", run: true }],
      open: "missing.py",
    };
    expect(await decode(await packed(odd))).toEqual({
      ...state,
      files: [{ name: "a.py", text: "" }],
      open: "a.py",
    });
  });
});

it("parts of a hash", () => {
  expect([...hashParts("#code=a-b_c&view=trace")]).toEqual([
    ["code", "a-b_c"],
    ["view", "trace"],
  ]);
  expect([...hashParts("")]).toEqual([]);
});
