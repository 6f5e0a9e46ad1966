/** Pieces that several views use. */

import { element } from "../dom";

export function viewPanel(id: string, title: string): HTMLElement {
  return element("div", {
    class: "view",
    id: `view-${id}`,
    role: "tabpanel",
    "data-testid": `view-${id}`,
    "aria-labelledby": `tab-${id}`,
    "aria-label": title,
  });
}

/** What a view says while it has nothing to show. */
export function emptyNote(title: string, text: string): HTMLElement {
  return element("div", { class: "empty" }, element("h2", {}, title), element("p", {}, text));
}

/** A labelled choice among things with an id and a title; hidden where there is but one. */
export function chooser(
  label: string,
  items: { id: string; title: string }[],
  selected: string,
  onChange: (id: string) => void,
): HTMLElement {
  const select = element("select", { "aria-label": label });
  for (const { id, title } of items) {
    select.append(element("option", { value: id, selected: id === selected }, title));
  }
  select.addEventListener("change", () => onChange(select.value));
  return element("label", { class: "field", hidden: items.length < 2 }, label, select);
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
