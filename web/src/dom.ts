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

/** Move the focus among `items` with two arrow keys, round and round, Home and End; returns where it went. */
export function moveFocus(
  event: KeyboardEvent,
  items: readonly HTMLElement[],
  [back, on]: readonly [string, string],
): HTMLElement | undefined {
  const at = items.indexOf(document.activeElement as HTMLElement);
  const targets: Record<string, number> = { [back]: at - 1, [on]: at + 1, Home: 0, End: -1 };
  const target = targets[event.key];
  if (at < 0 || target === undefined) return;
  event.preventDefault();
  const item = items.at(target % items.length)!;
  item.focus();
  return item;
}

/** Scroll `box` alone, and only as far as needed; along its lines, too, where it is a list. Unlike
 * `scrollIntoView`, this moves nothing around it. */
export function scrollWithin(box: Element, item: Element, margin = 8): void {
  const [outer, inner] = [box.getBoundingClientRect(), item.getBoundingClientRect()];
  const beyond = (low: number, high: number, from: number, to: number): number =>
    from < low + margin ? from - low - margin : Math.max(0, to - high + margin);
  box.scrollTop += beyond(outer.top, outer.bottom, inner.top, inner.bottom);
  if (box.matches("ol, [role=tablist]"))
    box.scrollLeft += beyond(outer.left, outer.right, inner.left, inner.right);
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
