/** The strip of files above the editor: open, add, rename, remove. */

import { signal } from "@preact/signals-core";
import { html, nothing, type TemplateResult } from "lit-html";
import { onArrows, range, reactive } from "../views/kit";
import { type ProgramFiles, refusal } from "./files";

interface FileTabsOptions {
  onOpen: (name: string) => void;
  onAdd: () => void;
  onRename: (from: string, to: string) => void;
  onRemove: (name: string) => void;
}

export class FileTabs {
  private readonly files = signal<ProgramFiles>({ files: [], open: "" });
  /** The file whose name is written anew. */
  private readonly renaming = signal<string | null>(null);

  constructor(
    private readonly strip: HTMLElement,
    private readonly options: FileTabsOptions,
  ) {
    reactive(strip, () => this.template());
    strip.addEventListener("keydown", (event) => this.onKey(event));
  }

  show(files: ProgramFiles): void {
    const hadFocus = this.strip.contains(document.activeElement);
    this.renaming.value = null;
    this.files.value = files;
    if (hadFocus) this.focusOpen();
  }

  /** Put a field over the tab; Enter takes the name, Escape leaves the old one. */
  rename(name: string): void {
    if (!this.tabOf(name)) return;
    this.renaming.value = name;
    const input = this.strip.querySelector("input")!;
    input.focus();
    input.setSelectionRange(0, name.length - ".py".length);
  }

  private template(): TemplateResult {
    const { files, open } = this.files.value;
    const renaming = this.renaming.value;
    const { onOpen, onAdd, onRemove } = this.options;
    const tab = ({ name }: { name: string }): TemplateResult => html`<button class="file-tab"
      type="button" role="tab" aria-selected=${name === open} aria-controls="editor"
      tabindex=${name === open ? 0 : -1} data-testid="file-tab"
      title=${name === open ? "F2 or a double click renames it" : nothing}
      @click=${() => name !== open && onOpen(name)} @dblclick=${() => this.rename(name)}
      >${name}</button>`;
    return html`<div class="file-list" role="tablist" aria-label="Files">${files.map(tab)}</div>
      <button class="file-add" type="button" aria-label="New file" title="New file"
        data-testid="file-add" @click=${onAdd}>+</button>
      ${
        files.length < 2
          ? nothing
          : html`<button class="file-remove" type="button" data-testid="file-remove"
              @click=${() => onRemove(open)}>Remove ${open}</button>`
      }
      ${renaming === null ? nothing : this.field(renaming)}`;
  }

  /** Beside the list, since a list of tabs may hold nothing but tabs. */
  private field(name: string): TemplateResult {
    const tab = this.tabOf(name)!;
    const left = Math.max(0, tab.offsetLeft - tab.parentElement!.scrollLeft);
    const check = ({ currentTarget }: Event): void => {
      const input = currentTarget as HTMLInputElement;
      input.setCustomValidity(refusal(input.value.trim(), this.files.peek(), name) ?? "");
      input.reportValidity();
    };
    const onKey = (event: KeyboardEvent): void => {
      const input = event.currentTarget as HTMLInputElement;
      event.stopPropagation();
      if (event.key === "Enter" && input.reportValidity()) this.take(name, input.value.trim());
      else if (event.key === "Escape") this.take(name, name);
    };
    const onBlur = ({ currentTarget }: Event): void => {
      const { value, validity } = currentTarget as HTMLInputElement;
      this.take(name, validity.valid ? value.trim() : name);
    };
    return html`<input class="file-name" value=${name} aria-label=${`New name of ${name}`}
      spellcheck="false" size=${name.length} style=${`left: ${left}px; min-width: ${tab.offsetWidth}px`}
      @input=${check} @keydown=${onKey} @blur=${onBlur} />`;
  }

  /** The end of renaming; the field may be left more than once on its way out. */
  private take(name: string, wish: string): void {
    if (this.renaming.peek() !== name) return;
    this.renaming.value = null;
    if (wish !== name && refusal(wish, this.files.peek(), name) === null)
      this.options.onRename(name, wish);
    this.focusOpen();
  }

  private tabOf(name: string): HTMLElement | undefined {
    return this.tabs.find((tab) => tab.textContent === name);
  }

  private get tabs(): HTMLElement[] {
    return [...this.strip.querySelectorAll<HTMLElement>(".file-tab")];
  }

  private focusOpen(): void {
    this.strip.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const { files } = this.files.peek();
    const at = this.tabs.findIndex((tab) => tab.matches(":focus"));
    if (at < 0) return;
    if (event.key === "F2") this.rename(files[at]!.name);
    else
      onArrows(event, range(files.length), at, (to) => {
        if (to !== at) this.options.onOpen(files[to]!.name);
      });
  }
}
