import { describe, expect, it } from "vitest";
import { activeParameter, openCall, parametersOf } from "../src/program/help/calls";
import { type ApiTable, Names } from "../src/program/help/table";

const table: ApiTable = {
  modules: {
    tvm: {
      tir: ["module", "", "", "tvm.tir"],
      build: ["function", "(mod: IRModule)", "", "Module"],
      script: ["module", "", "", "tvm.script"],
    },
    "tvm.tir": {
      Schedule: ["class", "(mod: IRModule)", "A program being transformed.", "Schedule"],
    },
    "tvm.script": { tir: ["module", "", "", "tvm.script.tir"] },
    "tvm.script.tir": { grid: ["function", "(*extents: Any)", "A nest of loops.", ""] },
  },
  classes: {
    Schedule: {
      mod: ["value", "", "", "IRModule"],
      split: [
        "function",
        "(loop: LoopRV, factors: list[int | None], preserve_unit_iters: bool = True)",
        "Split a loop.",
        "",
      ],
      copy: ["function", "()", "", "Schedule"],
    },
    Module: { time_evaluator: ["function", "(func_name: str)", "", ""] },
    IRModule: { show: ["function", "(*, black_format: bool = True)", "", ""] },
  },
};

const HEAD =
  "import tvm\nfrom tvm import tir\nfrom tvm.script import tir as T, ir as I\nimport mlcweb as m\n";

const find = (
  text: string,
  expression: string,
  variables: Record<string, string> = {},
): string | undefined =>
  new Names(table, HEAD + text, {
    variables,
    functions: [],
    blocks: [],
  }).find(expression)?.[1];

describe("what a name leads to", () => {
  it("follows imports in all their forms", () => {
    expect(find("", "T.grid")).toBe("(*extents: Any)");
    expect(find("", "tvm.tir.Schedule")).toBe("(mod: IRModule)");
    expect(find("", "tir.Schedule")).toBe("(mod: IRModule)");
    expect(find("", "m.build")).toBe("(mod: IRModule)");
    expect(find("", "np.ones")).toBeUndefined();
  });

  it("follows assignments, annotations, attributes and calls", () => {
    expect(find("sch = tvm.tir.Schedule(M)\n", "sch.split")).toMatch(/^\(loop/);
    expect(find("def f(x, s: tir.Schedule):\n", "s.split")).toMatch(/^\(loop/);
    expect(find("sch = tvm.tir.Schedule(M)\n", "sch.mod.show")).toMatch(/black_format/);
    expect(find("sch = tvm.tir.Schedule(M)\nt = sch.copy()\n", "t.split")).toMatch(/^\(loop/);
    expect(find("lib = tvm.build(M)\n", "lib.time_evaluator")).toBe("(func_name: str)");
  });

  it("knows what the last run has left", () => {
    expect(find("sch = made_elsewhere()\n", "sch.split", { sch: "Schedule" })).toMatch(/^\(loop/);
  });

  it("comes to an end where names go round in a circle", () => {
    expect(find("a = b.copy()\nb = a.copy()\n", "a.split")).toBeUndefined();
  });
});

describe("the call around the cursor", () => {
  it("is the innermost one, with the argument that is written", () => {
    expect(openCall("sch.split(loop, ")).toMatchObject({
      callee: "sch.split",
      index: 1,
      keyword: null,
    });
    expect(openCall("f(g(1, 2), [3, 4], ")).toMatchObject({ callee: "f", index: 2 });
    expect(openCall("f(g(1, ")).toMatchObject({ callee: "g", index: 1 });
    expect(openCall("sch.split(j, factors=[None, ")).toMatchObject({
      callee: "sch.split",
      keyword: "factors",
    });
  });

  it("is not misled by strings, comments, definitions and what is closed", () => {
    expect(openCall("f('a, (b', ")).toMatchObject({ callee: "f", index: 1 });
    expect(openCall("f(1,  # (a, b\n 2, ")).toMatchObject({ callee: "f", index: 2 });
    expect(openCall("def f(a, ")).toBeNull();
    expect(openCall("f(1)\n")).toBeNull();
    expect(openCall("x = (1, ")).toBeNull();
  });

  it("has the parameters of the signature", () => {
    const signature = "(loop: LoopRV, factors: list[int, str], *, a = (1, 2), **options)";
    expect(parametersOf(signature).map(({ name }) => name)).toEqual([
      "loop",
      "factors",
      "a",
      "options",
    ]);
    const active = (text: string): number => activeParameter(signature, openCall(text)!);
    expect(active("f(x, ")).toBe(1);
    expect(active("f(x, y, ")).toBe(-1);
    expect(active("f(a=")).toBe(2);
    expect(activeParameter("(*extents: Any)", openCall("f(1, 2, ")!)).toBe(0);
  });
});
