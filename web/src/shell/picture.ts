/** Pictures and pages of HTML in the output of programs. */

import DOMPurify from "dompurify";
import { element } from "../dom";
import type { OutputChunk, Picture } from "../python/wire";

const PREFIX = "data:image/png;base64,";
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
  // Without a word in `sandbox`: no scripts, no forms, no way to this page. The page's policy holds
  // in the frame, but not for `<link rel="preconnect">`, by whose address data could leave.
  const srcdoc = NO_LOOKUPS + DOMPurify.sanitize(html, { FORCE_BODY: true });
  return element("iframe", { class: "out-html", sandbox: "", srcdoc, title: "HTML output" });
}
