/** Making elements in one expression. */

type Attributes = Record<string, string | number | boolean | null | undefined>;
type Child = Node | string | null | undefined;

/** An element with attributes (`null` and `false` leave one out) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const node = document.getElementById(id);
  if (!node) throw new Error(`no element #${id}`);
  return node as T;
}

/** Milliseconds until `soon` waits no longer for a frame. */
const NO_FRAME = 200;

/** At the next frame; soon also where there is none, since nobody sees the page. */
export function soon(act: () => void): void {
  let done = false;
  const once = (): void => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    act();
  };
  const timer = setTimeout(once, NO_FRAME);
  requestAnimationFrame(once);
}
