import { describe, expect, it } from "vitest";
import { highlighted, parseLesson } from "../plugins/lesson_markdown";
import { staticLesson } from "../plugins/static_lesson";
import { shareDone } from "../src/lessons/progress";

const LESSON = `---
title: "Sums: a start"
chapter: 2
summary: One sum.
---

Text with \`code\` and [a view](view:trace).

## A section

\`\`\`python
x = 1 < 2
print(x)
\`\`\`

\`\`\`python static
import torch
\`\`\`

\`\`\`python exercise=sum varies folded
y = ...
\`\`\`

\`\`\`hint sum
Try *this*.
\`\`\`

\`\`\`python solution=sum
y = 1
\`\`\`
`;

describe("lessons from Markdown", () => {
  it("refuses front matter that is not whole", () => {
    const parsed = (front: string) => () => parseLesson("01-sums", `---\n${front}\n---\ntext\n`);
    expect(parsed("chapter: 2\nsummary: s")).toThrow("01-sums: the lesson has no title");
    expect(parsed("title: x\nchapter: two\nsummary: s")).toThrow('a number, not "two"');
    expect(() => parseLesson("01-sums", "text")).toThrow("begins with its title");
  });

  const lesson = parseLesson("01-sums", LESSON);

  it("reads what the list of lessons needs", () => {
    const { id, title, chapter, summary, cells, exercises } = lesson;
    expect({ id, title, chapter, summary, cells, exercises }).toEqual({
      id: "01-sums",
      title: "Sums: a start",
      chapter: 2,
      summary: "One sum.",
      cells: 2,
      exercises: ["sum"],
    });
  });

  it("takes fences apart by the words behind them", () => {
    expect(lesson.parts.map(({ kind }) => kind)).toEqual([
      "text",
      "cell",
      "static",
      "cell",
      "hint",
      "solution",
    ]);
    const cells = lesson.parts.filter((part) => part.kind === "cell");
    expect(
      cells.map(({ number, varies, folded, exercise }) => [number, varies, folded, exercise]),
    ).toEqual([
      [1, false, false, null],
      [2, true, true, "sum"],
    ]);
    expect(cells[0]!.source).toBe("x = 1 < 2\nprint(x)");
  });

  it("puts headings below the lesson's own", () => {
    const [text] = lesson.parts;
    expect(text).toMatchObject({ kind: "text" });
    expect(text && "html" in text ? text.html : "").toContain("<h3>A section</h3>");
  });

  it("highlights code line by line and escapes it", () => {
    const html = highlighted("x = 1 < 2\n\nimport y\n");
    expect(html.split("\n")).toHaveLength(3);
    expect(html).toContain("&lt;");
    expect(html).toContain('<span class="tok-keyword">import</span>');
  });

  it("refuses fences that it does not know, and lessons without a title", () => {
    expect(() => parseLesson("a", `${LESSON}\n\`\`\`rust\nfn\n\`\`\`\n`)).toThrow(
      'a fence of kind "rust" is not known',
    );
    expect(() => parseLesson("a", "text")).toThrow("a lesson begins with its title");
    expect(() => parseLesson("a", LESSON.replace("chapter: 2\n", ""))).toThrow(
      "the lesson has no chapter",
    );
  });

  it("makes a page of it that needs no script, with what was recorded", () => {
    const cells = {
      "1": { digest: "", text: "True <1>\n", modules: [{ title: "mod", source: "y = 2\n" }] },
    };
    const { html, title } = staticLesson(lesson, {
      date: "2026-01-02",
      browser: "Chromium 150",
      cells,
    });
    expect(title).toBe("Sums: a start");
    expect(html).toContain("<pre>True &lt;1&gt;\n</pre>");
    expect(html).toContain("<summary>mod</summary>");
    expect(html).toContain("recorded on 2026-01-02, Chromium 150");
    expect(html.match(/<summary>Hint/g)).toHaveLength(1);
    expect(staticLesson(lesson, null).html).not.toContain("recorded");
  });
});

describe("progress", () => {
  it("is counted in exercises where there are some, else in cells", () => {
    const progress = { ran: [1, 2], passed: ["a"], edits: {} };
    expect(shareDone(progress, 4, 2)).toBe(0.5);
    expect(shareDone(progress, 8, 0)).toBe(0.25);
    expect(shareDone(progress, 0, 0)).toBe(0);
  });
});
