/**
 * Which pages may have their frames start a program without a click in the frame.
 *
 * A program in a frame runs at the playground's origin. Any site can hold such a frame, and what it
 * says of clicks cannot be checked. So only pages of the same origin may, and those of origins that
 * `settings.json`, beside the page, lists as `embedders`.
 */

export async function mayStart(origin: string | null, base: string): Promise<boolean> {
  if (origin === null || origin === "null") return false;
  if (origin === new URL(base).origin) return true;
  try {
    const response = await fetch(new URL("settings.json", base), { cache: "no-cache" });
    const { embedders } = (await response.json()) as { embedders?: unknown };
    return Array.isArray(embedders) && embedders.includes(origin);
  } catch {
    return false;
  }
}
