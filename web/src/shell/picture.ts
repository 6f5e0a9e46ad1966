/** Pictures in the output of programs. */

import { element } from "../dom";
import type { Picture } from "../python/protocol";

const PREFIX = "data:image/png;base64,";
const drawn = new WeakMap<Picture, HTMLElement>();

/** The element that shows a picture; the same one each time, so that it does not flicker. */
export function pictureElement(picture: Picture): HTMLElement {
  let found = drawn.get(picture);
  if (!found) {
    const { url, width, height, description } = picture;
    found = element("img", {
      class: "out-picture",
      // Programs reach the worker that sends this: nothing else than a picture comes through.
      src: url.startsWith(PREFIX) ? url : PREFIX,
      width,
      height,
      alt: description,
    });
    drawn.set(picture, found);
  }
  return found;
}
