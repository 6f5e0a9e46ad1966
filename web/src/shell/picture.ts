/** Pictures and pages of HTML in the output of programs. */

import DOMPurify from "dompurify";
import { element } from "../dom";
import type { OutputChunk } from "../python/messages";
import { pixelsOf } from "../python/png";
import { MAX_HTML, MAX_PICTURE_BYTES, MAX_PICTURE_PIXELS, type Picture } from "../python/wire";

/** Elements inside of each other in a page of HTML, and templates in it: reading what is more nested
 * would keep the page busy for minutes. */
const MAX_DEPTH = 50;
const MAX_TEMPLATES = 50;
const DEEPER = `*${" > *".repeat(MAX_DEPTH)}`;
/** Characters of HTML that are read before its depth is looked at again. */
const PART = 4000;
const drawn = new WeakMap<OutputChunk, HTMLElement>();
/** Links would be looked up before anyone follows them. */
const NO_LOOKUPS = '<meta http-equiv="x-dns-prefetch-control" content="off">';

/** The element that shows what is no text; null for a text. It is the same one each time, so that it
 * neither flickers nor loads again. */
export function richElement(chunk: OutputChunk): HTMLElement | null {
  const { picture, html } = chunk;
  if (!picture && html === undefined) return null;
  const node = drawn.get(chunk) ?? (picture ? pictureElement(picture) : pageElement(html!));
  drawn.set(chunk, node);
  return node;
}

function pictureElement({ url, width, height, description }: Picture): HTMLElement {
  // Programs reach the worker that sends this: nothing else than a picture comes through.
  const excess = excessOfPicture(url);
  if (excess) return notShown("Picture", excess);
  return element("img", {
    class: "out-picture",
    src: url,
    width: width || null,
    height: height || null,
    alt: description,
  });
}

/** Why a picture is not shown; null where it is. */
function excessOfPicture(url: string): string | null {
  const pixels = pixelsOf(url);
  if (pixels === null) return "it is no PNG file";
  if (pixels > MAX_PICTURE_PIXELS) return moreThan(pixels, MAX_PICTURE_PIXELS, "pixels");
  const bytes = Math.floor((url.length * 3) / 4);
  return bytes > MAX_PICTURE_BYTES ? moreThan(bytes, MAX_PICTURE_BYTES, "bytes") : null;
}

function pageElement(html: string): HTMLElement {
  const excess = excessOfPage(html);
  if (excess) return notShown("HTML", excess);
  // Without a word in `sandbox`: no scripts, no forms, no way to this page. The page's policy holds
  // in the frame, but not for `<link rel="preconnect">`, by whose address data could leave.
  const srcdoc = NO_LOOKUPS + DOMPurify.sanitize(html, { FORCE_BODY: true });
  return element("iframe", { class: "out-html", sandbox: "", srcdoc, title: "HTML output" });
}

/** Why a page of HTML is not shown; null where it is. */
function excessOfPage(html: string): string | null {
  if (html.length > MAX_HTML) return moreThan(html.length, MAX_HTML, "characters");
  const templates = html.split(/<template/i).length - 1;
  if (templates > MAX_TEMPLATES) return moreThan(templates, MAX_TEMPLATES, "templates");
  // In parts, since the time that the parser takes grows with the square of the depth.
  const page = document.implementation.createHTMLDocument();
  page.open();
  for (let start = 0; start < html.length; start += PART) {
    page.write(html.slice(start, start + PART));
    if (isDeep(page)) return `its elements are nested more than ${MAX_DEPTH} deep`;
  }
  return null;
}

function isDeep(root: Document | DocumentFragment): boolean {
  const templates = [...root.querySelectorAll("template")];
  return root.querySelector(DEEPER) !== null || templates.some(({ content }) => isDeep(content));
}

function moreThan(count: number, limit: number, what: string): string {
  return `it has ${count.toLocaleString("en")} ${what}, more than ${limit.toLocaleString("en")}`;
}

function notShown(what: string, reason: string): HTMLElement {
  return element("div", { class: "out-note warning" }, `${what} not shown: ${reason}`);
}
