/**
 * Workers that stand under the document's Content-Security-Policy on every host.
 *
 * A worker made by its URL takes the policy of that file's response, and many hosts cannot send
 * headers. One made from a blob inherits that of its document, which is a `<meta>` element of ours.
 */

export function confinedWorker(url: string, name: string): Worker {
  const script = `import ${JSON.stringify(new URL(url, document.baseURI).href)};`;
  const blob = new Blob([script], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(blob), { type: "module", name });
}
