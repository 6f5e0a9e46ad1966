/** What the browser stores, where it lets us: in some frames even reading storage throws. */

const PREFIX = "mlcweb.";

/** What to tell the reader where `store` is in vain. */
export const NO_ROOM = "The browser has no room for what you write: it is lost with this tab";

export function load(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

/** Store `value`, or forget the key if it is null; false where there is no room, or no right to. */
export function store(key: string, value: string | null): boolean {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
    return true;
  } catch {
    return false;
  }
}

/** Milliseconds after the last change until it is stored. */
const DELAY = 300;

/** Calls `save` a little after the last of several changes, at the latest when the page is left. */
export class Saving {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly save: () => void) {}

  soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.now, DELAY);
    addEventListener("pagehide", this.now);
  }

  readonly now = (): void => {
    clearTimeout(this.timer);
    removeEventListener("pagehide", this.now);
    this.save();
  };
}
