/** The strip of files above the editor: open, add, rename, remove. */

import { element } from "../dom";
import { type ProgramFiles, refusal } from "./files";

interface FileTabsOptions {
  onOpen: (name: string) => void;
  onAdd: () => void;
  onRename: (from: string, to: string) => void;
  onRemove: (name: string) => void;
}

export class FileTabs {
  private files: ProgramFiles = { files: [], open: "" };

  constructor(
    private readonly strip: HTMLElement,
    private readonly options: FileTabsOptions,
  ) {
    strip.addEventListener("keydown", (event) => this.onKey(event));
  }

  show(files: ProgramFiles): void {
    const hadFocus = this.strip.contains(document.activeElement);
    this.files = files;
    const add = element(
      "button",
      {
        class: "file-add",
        type: "button",
        "aria-label": "New file",
        title: "New file",
        "data-testid": "file-add",
      },
      "+",
    );
    add.addEventListener("click", () => this.options.onAdd());
    const list = element("div", { class: "file-list", role: "tablist", "aria-label": "Files" });
    list.append(...files.files.map(({ name }) => this.tab(name)));
    this.strip.replaceChildren(list, add, ...this.tools(files));
    if (hadFocus) this.strip.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }

  private tab(name: string): HTMLElement {
    const open = name === this.files.open;
    const button = element(
      "button",
      {
        class: "file-tab",
        type: "button",
        role: "tab",
        "aria-selected": String(open),
        "aria-controls": "editor",
        tabindex: open ? 0 : -1,
        "data-testid": "file-tab",
        title: open ? "F2 or a double click renames it" : null,
      },
      name,
    );
    button.addEventListener("click", () => {
      if (name !== this.files.open) this.options.onOpen(name);
    });
    button.addEventListener("dblclick", () => this.rename(name));
    return button;
  }

  private tools({ files, open }: ProgramFiles): HTMLElement[] {
    if (files.length < 2) return [];
    const remove = element(
      "button",
      { class: "file-remove", type: "button", "data-testid": "file-remove" },
      `Remove ${open}`,
    );
    remove.addEventListener("click", () => this.options.onRemove(open));
    return [remove];
  }

  /** Put a field over the tab; Enter takes the name, Escape leaves the old one. */
  rename(name: string): void {
    const tab = [...this.strip.querySelectorAll<HTMLElement>(".file-tab")].find(
      (each) => each.textContent === name,
    );
    if (!tab) return;
    const input = element("input", {
      class: "file-name",
      value: name,
      "aria-label": `New name of ${name}`,
      spellcheck: "false",
      size: name.length,
    });
    // Beside the list, since a list of tabs may hold nothing but tabs.
    input.style.left = `${Math.max(0, tab.offsetLeft - tab.parentElement!.scrollLeft)}px`;
    input.style.minWidth = `${tab.offsetWidth}px`;
    this.strip.append(input);
    input.focus();
    input.setSelectionRange(0, name.length - ".py".length);
    let done = false;
    const end = (taken: boolean): void => {
      if (done) return;
      done = true;
      const wish = input.value.trim();
      if (taken && wish !== name && refusal(wish, this.files, name) === null)
        this.options.onRename(name, wish);
      else this.show(this.files);
      this.strip.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
    };
    input.addEventListener("input", () => {
      input.setCustomValidity(refusal(input.value.trim(), this.files, name) ?? "");
      input.reportValidity();
    });
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && input.reportValidity()) end(true);
      else if (event.key === "Escape") end(false);
    });
    input.addEventListener("blur", () => end(input.validity.valid));
  }

  private onKey(event: KeyboardEvent): void {
    const tabs = [...this.strip.querySelectorAll<HTMLElement>(".file-tab")];
    const at = tabs.findIndex((tab) => tab.matches(":focus"));
    if (at < 0) return;
    if (event.key === "F2") this.rename(this.files.files[at]!.name);
    const step: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: tabs.length - 1,
    };
    const target = this.files.files[step[event.key] ?? -1];
    if (!target) return;
    event.preventDefault();
    this.options.onOpen(target.name);
  }
}
