/**
 * What a link holds: the files and what is looked at, as versioned JSON, deflated, in base64url.
 *
 * A link is for ever, so every version that was ever written stays readable: `upgrades` brings an
 * older one to the next.
 */

/** The state of the page that a link brings back. Nothing of it runs by itself. */
export interface SharedState {
  version: 1;
  files: { name: string; text: string }[];
  /** Name of the file in the editor. */
  open: string;
  /** The view at the front. */
  view?: string;
  /** What single views need to show the same again, by the view's id; plain JSON. */
  views?: Record<string, unknown>;
}

const VERSION = 1;

/** From version n to n + 1, at index n - 1. */
const upgrades: ((old: Record<string, unknown>) => Record<string, unknown>)[] = [];

/** Longest text that is unpacked, in characters: a short link can hold a very long one. */
const LIMIT = 2_000_000;

/** A link that cannot be opened; the message is for the reader. */
export class BadLink extends Error {}

/** `state` as the part of an address behind `#code=`. */
export async function encode(state: SharedState): Promise<string> {
  const packed = new Blob([JSON.stringify(state)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  return toBase64(new Uint8Array(await new Response(packed).arrayBuffer()));
}

/**
 * The state in a text that `encode` made, of this version or an older one.
 *
 * Throws `BadLink` where the text is damaged, too long, or of a later version.
 */
export async function decode(text: string): Promise<SharedState> {
  let content: unknown;
  try {
    content = JSON.parse(await inflate(fromBase64(text)));
  } catch (error) {
    if (error instanceof BadLink) throw error;
    throw new BadLink("The link is damaged: a part of it may have been cut off.");
  }
  return check(upgrade(content));
}

function upgrade(content: unknown): Record<string, unknown> {
  if (typeof content !== "object" || content === null)
    throw new BadLink("The link holds no program.");
  let state = content as Record<string, unknown>;
  const version = Number(state.version);
  if (version > VERSION)
    throw new BadLink("The link was made by a later version of this page; reload to get it.");
  for (const next of upgrades.slice(version - 1)) state = next(state);
  return state;
}

function check(state: Record<string, unknown>): SharedState {
  const { files, open, view, views } = state;
  const whole =
    Array.isArray(files) &&
    files.length > 0 &&
    files.every((file) => typeof file?.name === "string" && typeof file?.text === "string");
  if (!whole) throw new BadLink("The link holds no program.");
  const kept = files.map(({ name, text }) => ({ name, text }) as { name: string; text: string });
  return {
    version: VERSION,
    files: kept,
    open: kept.some(({ name }) => name === open) ? (open as string) : kept[0]!.name,
    ...(typeof view === "string" ? { view } : {}),
    ...(typeof views === "object" && views !== null
      ? { views: views as Record<string, unknown> }
      : {}),
  };
}

async function inflate(bytes: Uint8Array): Promise<string> {
  const reader = new Blob([bytes as BlobPart])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw"))
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
    if (text.length > LIMIT) throw new BadLink("The link holds more text than this page opens.");
  }
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
