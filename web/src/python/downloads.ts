/** Signs of life of downloads that others make. */

/** Milliseconds between two signs. */
const INTERVAL = 500;

/** Have every fetch of `scope` call `heard` as its parts arrive, now and then; returns the way back. */
export function listenToDownloads(
  scope: { fetch: typeof fetch },
  heard: () => void,
  now: () => number = () => performance.now(),
): () => void {
  const plain = scope.fetch;
  let last = -Infinity;
  const sign = (): void => {
    if (now() - last < INTERVAL) return;
    last = now();
    heard();
  };
  scope.fetch = async (...request) => {
    const response = await plain.apply(scope, request);
    sign();
    void follow(response.clone().body, sign);
    return response;
  };
  return () => {
    scope.fetch = plain;
  };
}

async function follow(body: ReadableStream<Uint8Array> | null, sign: () => void): Promise<void> {
  const reader = body?.getReader();
  try {
    while (reader && !(await reader.read()).done) sign();
  } catch {
    // Whoever asked for it hears of it.
  }
}
