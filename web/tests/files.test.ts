import { describe, expect, it } from "vitest";
import {
  freeName,
  type ProgramFiles,
  parseFiles,
  refusal,
  renamed,
  withFile,
  withoutFile,
  withText,
} from "../src/program/files";
import { fromNotebook, toNotebook } from "../src/program/interchange";

const two: ProgramFiles = {
  files: [
    { name: "a.py", text: "1" },
    { name: "b.py", text: "2" },
  ],
  open: "b.py",
};

describe("files", () => {
  it("have names that Python can import, each once", () => {
    expect(refusal("kernels_2.py", two)).toBeNull();
    for (const name of ["x", "my file.py", "1.py", "../a.py", ""])
      expect(refusal(name, two)).toMatch(/letters/);
    expect(refusal("a.py", two)).toBe("There is a a.py already");
    expect(refusal("a.py", two, "a.py")).toBeNull();
    expect(refusal("c.ipynb", two, "a.py")).toMatch(/stays/);
  });

  it("get a free name from any wish", () => {
    expect(freeName("a.py", two)).toBe("a_2.py");
    expect(freeName("Chapter 4 (copy).ipynb", two)).toBe("Chapter_4_copy_.ipynb");
    expect(freeName("2_tensor.py", two)).toBe("_2_tensor.py");
  });

  it("are added, changed, renamed and removed without touching the others", () => {
    expect(withFile(two, { name: "c.py", text: "" }).open).toBe("c.py");
    expect(withText(two, "a.py", "9").files).toEqual([{ name: "a.py", text: "9" }, two.files[1]]);
    expect(renamed(two, "b.py", "z.py")).toEqual({
      files: [two.files[0], { name: "z.py", text: "2" }],
      open: "z.py",
    });
    expect(withoutFile(two, "b.py")).toEqual({ files: [two.files[0]], open: "a.py" });
    const one = withoutFile(two, "b.py");
    expect(withoutFile(one, "a.py")).toBe(one);
  });

  it("come back from storage, and nothing else does", () => {
    expect(parseFiles(JSON.stringify(two))).toEqual(two);
    expect(parseFiles(JSON.stringify({ ...two, open: "gone.py" }))?.open).toBe("a.py");
    for (const text of [
      null,
      "",
      "{",
      "{}",
      '{"files":[]}',
      '{"files":[{"name":"a b","text":""}]}',
    ]) {
      expect(parseFiles(text)).toBeNull();
    }
  });
});

describe("notebooks", () => {
  const program =
    "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\ny = 2\n\n# %%\nx + y\n";

  it("and percent programs stand for each other", () => {
    expect(fromNotebook(toNotebook(program))).toBe(program);
  });

  it("have a cell for each part", () => {
    const { cells, nbformat } = JSON.parse(toNotebook(program));
    expect(nbformat).toBe(4);
    expect(cells.map((cell: { cell_type: string }) => cell.cell_type)).toEqual([
      "markdown",
      "code",
      "code",
    ]);
    expect(cells[0].source).toEqual(["# Title\n", "\n", "Text."]);
    expect(cells[1].source.join("")).toBe("x = 1\n\n\ny = 2");
  });

  it("are one cell where the program has no parts", () => {
    expect(JSON.parse(toNotebook("x = 1\n")).cells).toHaveLength(1);
  });

  it("that are none are refused", () => {
    expect(() => fromNotebook("x = 1")).toThrow(/Not a Jupyter notebook/);
    expect(() => fromNotebook("{}")).toThrow(/Not a Jupyter notebook/);
  });
});
