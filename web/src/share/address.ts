/** The page's address: what its hash asks for, and the hash that asks for it. */

/** `#code=…` opens a shared program, `#lesson=…` a lesson; parts are joined by `&`. */
export function hashParts(hash: string): Map<string, string> {
  const parts = hash.replace(/^#/, "").split("&").filter(Boolean);
  return new Map(
    parts.map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
    }),
  );
}

/** The address of this page that opens `code`, without what else its own address asks for. */
export function linkTo(code: string): string {
  const url = new URL(location.href);
  url.search = "";
  url.hash = `code=${code}`;
  return url.href;
}

/** Put `hash` into the address bar, without a new entry in the history; "" takes it away. */
export function setHash(hash: string): void {
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch {
    // Some frames may not; the page works without.
  }
}
