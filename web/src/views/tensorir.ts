/** TensorIR: the text of every module that the program shows, or that its schedules arrived at. */

import { element } from "../dom";
import { highlighted } from "../highlight";
import type { ShownModule } from "../python/protocol";
import { copyText, emptyNote, viewPanel } from "./parts";
import type { View, ViewContext } from "./view";

export function tensorIRView({ toast }: ViewContext): View {
  const panel = viewPanel("tensorir", "TensorIR");
  panel.append(
    emptyNote(
      "No module yet",
      "Run the program. Every module that it shows with .show() or display(…) appears here, or else the last state of its schedules.",
    ),
  );

  const card = ({ title, source }: ShownModule): HTMLElement => {
    const copy = element("button", { class: "button quiet small" }, "Copy");
    copy.addEventListener("click", () => {
      void copyText(source).then((done) =>
        toast(done ? "Copied" : "The browser does not allow copying here"),
      );
    });
    return element(
      "article",
      { class: "card" },
      element("header", { class: "card-head" }, element("h2", {}, title), copy),
      element(
        "pre",
        { class: "code numbered", tabindex: 0, role: "group", "aria-label": title },
        highlighted(source),
      ),
    );
  };

  return {
    id: "tensorir",
    title: "TensorIR",
    panel,
    onResult({ modules, ok }) {
      if (modules.length) panel.replaceChildren(...modules.map(card));
      else if (ok) {
        panel.replaceChildren(
          emptyNote("No module", "The program ran, but it defined no IRModule and no schedule."),
        );
      }
      panel.scrollTop = 0;
    },
  };
}
