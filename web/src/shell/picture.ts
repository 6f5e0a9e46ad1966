/** Pictures and pages of HTML in the output of programs. */

import DOMPurify from "dompurify";
import { element } from "../dom";
import type { OutputChunk, Picture } from "../python/wire";

const PREFIX = "data:image/png;base64,";
/** Characters, and elements inside of each other, of a page of HTML: checking what is larger would keep
 * the page busy for seconds. */
const MAX_HTML = { characters: 250_000, depth: 50 };
const drawn = new WeakMap<OutputChunk, HTMLElement>();
/** Links would be looked up before anyone follows them. */
const NO_LOOKUPS = '<meta http-equiv="x-dns-prefetch-control" content="off">';

/** The element that shows what is no text; null for a text. It is the same one each time, so that it
 * neither flickers nor loads again. */
export function richElement(chunk: OutputChunk): HTMLElement | null {
  const { picture, html } = chunk;
  if (!picture && html === undefined) return null;
  const found = drawn.get(chunk) ?? (picture ? pictureElement(picture) : pageElement(html!));
  drawn.set(chunk, found);
  return found;
}

function pictureElement({ url, width, height, description }: Picture): HTMLElement {
  return element("img", {
    class: "out-picture",
    // Programs reach the worker that sends this: nothing else than a picture comes through.
    src: url.startsWith(PREFIX) ? url : PREFIX,
    width: width || null,
    height: height || null,
    alt: description,
  });
}

function pageElement(html: string): HTMLElement {
  const excess = excessOf(html);
  if (excess) return element("div", { class: "out-note warning" }, `HTML not shown: ${excess}`);
  // Without a word in `sandbox`: no scripts, no forms, no way to this page. The page's policy holds
  // in the frame, but not for `<link rel="preconnect">`, by whose address data could leave.
  const srcdoc = NO_LOOKUPS + DOMPurify.sanitize(html, { FORCE_BODY: true });
  return element("iframe", { class: "out-html", sandbox: "", srcdoc, title: "HTML output" });
}

/** Why a page of HTML is not shown; null where it is. */
function excessOf(html: string): string | null {
  const { characters, depth } = MAX_HTML;
  const [size, limit] = [html.length, characters].map((count) => count.toLocaleString("en"));
  if (html.length > characters) return `it has ${size} characters, more than ${limit}`;
  const page = new DOMParser().parseFromString(html, "text/html");
  const isDeep = page.querySelector(`*${" > *".repeat(depth)}`) !== null;
  return isDeep ? `its elements are nested more than ${depth} deep` : null;
}
