/** The program's text, with the strides of its accesses below the lines that make them. */

import { element } from "../../dom";
import { highlightedLines } from "../../highlight";
import type { AccessReport } from "./report";
import { badge } from "./tables";

export class BadgedListing {
  readonly root = element("pre", {
    class: "access-code",
    tabindex: 0,
    "aria-label": "The program that ran, with the strides of its accesses",
    "data-testid": "access-code",
  });
  private lines: HTMLElement[] = [];
  private current: HTMLElement | null = null;

  show({ lines, sites, buffers }: AccessReport): void {
    const texts = highlightedLines(lines.join("\n"));
    this.lines = texts.map((text, index) => {
      const found = sites.filter(({ line }) => line === index + 1);
      const line = element(
        "span",
        { class: "access-line" },
        element("span", { class: "access-text" }, text),
      );
      // A value that is read and written at one place needs one badge.
      const shown = new Map(
        found.map((site) => [`${buffers[site.buffer]!.name} ${site.badge} ${site.loop}`, site]),
      );
      if (shown.size) {
        const badges = [...shown.values()].map((site) =>
          element("span", { class: "line-badge" }, `${buffers[site.buffer]!.name} `, badge(site)),
        );
        const indent = lines[index]!.search(/\S|$/);
        const row = element("span", { class: "line-badges" }, ...badges);
        row.style.setProperty("--indent", String(indent));
        line.append(row);
      }
      return line;
    });
    this.current = null;
    this.root.replaceChildren(element("code", {}, ...this.lines));
  }

  /** Mark the line of the last access; null for none. */
  mark(line: number | null): void {
    const next = line === null ? null : (this.lines[line - 1] ?? null);
    if (next === this.current) return;
    this.current?.classList.remove("is-current");
    next?.classList.add("is-current");
    this.current = next;
  }
}
