/** TensorIR: the text of every module that the program shows, or that its schedules arrived at. */

import { signal } from "@preact/signals-core";
import { html } from "lit-html";
import { highlighted } from "../highlight";
import type { ShownModule } from "../python/wire";
import { copyAndTell, emptyNote, reactive, viewPanel } from "./kit";
import type { View, ViewContext } from "./view";

export function tensorIRView({ toast }: ViewContext): View {
  const panel = viewPanel("tensorir", "TensorIR");
  /** Null until a program has run. */
  const modules = signal<ShownModule[]>([]);

  const card = ({ title, source }: ShownModule) => html`<article class="card">
    <header class="card-head">
      <h2>${title}</h2>
      <button class="button quiet small" @click=${() => copyAndTell(source, toast)}>Copy</button>
    </header>
    <pre class="code numbered" tabindex="0" role="group" aria-label=${title}>${highlighted(source)}</pre>
  </article>`;

  reactive(panel, () => {
    if (modules.value.length) return modules.value.map(card);
    return emptyNote(
      "No module yet",
      "Every module that a program shows with .show() or display(…) appears here, or else the last state of its schedules.",
    );
  });

  return {
    id: "tensorir",
    title: "TensorIR",
    panel,
    onResult(result) {
      if (result.modules.length || result.ok) modules.value = result.modules;
      panel.scrollTop = 0;
    },
  };
}
