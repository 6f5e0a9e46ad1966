/** Which lines two texts have in common. */

/** Pairs of lines that are looked at; two longer texts differ as a whole. */
const MAX_PAIRS = 4_000_000;

/** The longest sequence of pairs of equal lines, as their indices. */
export function commonLines(left: string[], right: string[]): [number, number][] {
  if (left.length * right.length > MAX_PAIRS) return [];
  const width = right.length + 1;
  const lengths = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      lengths[at] =
        left[i] === right[j]
          ? lengths[at + width + 1]! + 1
          : Math.max(lengths[at + width]!, lengths[at + 1]!);
    }
  }
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    if (left[i] === right[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i += 1;
    else j += 1;
  }
  return pairs;
}
