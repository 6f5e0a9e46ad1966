/** What was thrown, for the reader. */

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
