/** Which panes are seen: on a wide page a document beside a view, on a phone one pane at a time. */

import { byId } from "../dom";
import type { View } from "../views/view";
import type { PageDocument } from "./document";
import { setUpTabs } from "./tabs";

const narrow = matchMedia("(max-width: 800px)");

export class Panes {
  /** Called when a document has taken the left half. */
  onOpen?: (document: PageDocument) => void;
  /** Called when a view comes to the front. */
  onView?: (view: string) => void;
  private readonly tabs;
  private open: PageDocument;

  constructor(
    private readonly documents: PageDocument[],
    private readonly views: View[],
  ) {
    this.open = documents[0]!;
    const left = documents.flatMap((document) => document.panes);
    this.tabs = setUpTabs(
      byId("panes"),
      [...left.map((pane) => ({ ...pane, kind: "narrow-only" })), ...views],
      (id) => {
        document.body.dataset.pane = id;
        document.body.dataset.side = left.some((pane) => pane.id === id) ? "document" : "views";
        byId("views").classList.toggle("is-front", document.body.dataset.side === "views");
        for (const pane of left) pane.panel.classList.toggle("is-front", pane.id === id);
        for (const view of views) view.panel.hidden = view.id !== id;
        const view = views.find((each) => each.id === id);
        view?.onShow?.();
        if (view) this.onView?.(id);
      },
    );
    narrow.addEventListener("change", () => this.arrange());
    this.openDocument(this.open.id);
  }

  get document(): PageDocument {
    return this.open;
  }

  /** Put a document into the left half. */
  openDocument(id: string): void {
    this.open = this.documents.find((each) => each.id === id) ?? this.open;
    document.body.dataset.document = this.open.id;
    for (const { id: name, panes } of this.documents) {
      byId(`document-${name}`).hidden = name !== this.open.id;
      for (const pane of panes) byId(`tab-${pane.id}`).hidden = name !== this.open.id;
    }
    if (this.isLeft(document.body.dataset.pane))
      document.body.dataset.pane = this.open.panes[0]!.id;
    this.arrange();
    this.open.shown?.();
    this.onOpen?.(this.open);
  }

  /** Bring a pane to the front. On a wide page those of the document are always there. */
  show(id: string): void {
    const owner = this.documents.find(({ panes }) => panes.some((pane) => pane.id === id));
    if (owner && owner !== this.open) this.openDocument(owner.id);
    if (narrow.matches || !owner) this.tabs.select(id);
  }

  /** Show a view beside the document, where there is room for both. */
  bringBack(view: string): void {
    if (!narrow.matches && this.views.some(({ id }) => id === view)) this.tabs.select(view);
  }

  private isLeft(id: string | undefined): boolean {
    return (
      id === undefined || this.documents.some(({ panes }) => panes.some((pane) => pane.id === id))
    );
  }

  private arrange(): void {
    const pane = document.body.dataset.pane;
    const left = this.isLeft(pane);
    if (narrow.matches)
      this.tabs.select(left ? (pane ?? this.open.panes[0]!.id) : this.open.panes[0]!.id);
    else this.tabs.select(left ? this.views[0]!.id : pane!);
  }
}
