/** Pictures and pages of HTML in the output of programs. */

import DOMPurify from "dompurify";
import { element } from "../dom";
import type { OutputChunk, Picture } from "../python/wire";

const PREFIX = "data:image/png;base64,";
const drawn = new WeakMap<Picture, HTMLElement>();
/** Links would be looked up before anyone follows them. */
const NO_LOOKUPS = '<meta http-equiv="x-dns-prefetch-control" content="off">';

/** The element that shows a picture; the same one each time, so that it does not flicker. */
function pictureElement(picture: Picture): HTMLElement {
  let found = drawn.get(picture);
  if (!found) {
    const { url, width, height, description } = picture;
    found = element("img", {
      class: "out-picture",
      // Programs reach the worker that sends this: nothing else than a picture comes through.
      src: url.startsWith(PREFIX) ? url : PREFIX,
      width: width || null,
      height: height || null,
      alt: description,
    });
    drawn.set(picture, found);
  }
  return found;
}

/** The element that shows what is no text; null for a text. */
export function richElement({ picture, html }: OutputChunk): HTMLElement | null {
  if (picture) return pictureElement(picture);
  if (html === undefined) return null;
  // Without a word in `sandbox`: no scripts, no forms, no way to this page. The page's policy holds
  // in the frame, but not for `<link rel="preconnect">`, by whose address data could leave.
  const srcdoc = NO_LOOKUPS + DOMPurify.sanitize(html, { FORCE_BODY: true });
  return element("iframe", { class: "out-html", sandbox: "", srcdoc, title: "HTML output" });
}
