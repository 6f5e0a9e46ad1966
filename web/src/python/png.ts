/** What a picture of a program is, by its file: what the program says of it may be wrong. */

const PREFIX = "data:image/png;base64,";
/** The signature of a PNG file, and the start of its first chunk, which holds width and height. */
const START = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
/** Base64 characters of what is looked at: 24 bytes. */
const LENGTH = 32;

/** Pixels of a PNG file in a ``data:`` URL; null where it is something else. */
export function pixelsOf(url: string): number | null {
  if (!url.startsWith(PREFIX)) return null;
  let bytes: string;
  try {
    bytes = atob(url.slice(PREFIX.length, PREFIX.length + LENGTH));
  } catch {
    return null;
  }
  if (bytes.length < 24 || !bytes.startsWith(START)) return null;
  const numberAt = (at: number): number =>
    [0, 1, 2, 3].reduce((sum, i) => sum * 256 + bytes.charCodeAt(at + i), 0);
  return numberAt(16) * numberAt(20);
}
