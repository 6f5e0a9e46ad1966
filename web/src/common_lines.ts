/** Which lines two texts have in common. */

/** Pairs of lines that are looked at; two longer texts differ as a whole. */
const MAX_PAIRS = 4_000_000;

type Pair = [left: number, right: number];

/** A longest sequence of pairs of equal lines, as their indices; lines equal at both ends are pairs. */
export function commonLines(left: string[], right: string[]): Pair[] {
  const shorter = Math.min(left.length, right.length);
  let head = 0;
  while (head < shorter && left[head] === right[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && left.at(-1 - tail) === right.at(-1 - tail)) tail += 1;
  const [end, other] = [left.length - tail, right.length - tail];
  const between = commonBetween(left.slice(head, end), right.slice(head, other));
  return [
    ...Array.from({ length: head }, (_, at): Pair => [at, at]),
    ...between.map(([i, j]): Pair => [head + i, head + j]),
    ...Array.from({ length: tail }, (_, at): Pair => [end + at, other + at]),
  ];
}

function commonBetween(left: string[], right: string[]): Pair[] {
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
  const pairs: Pair[] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    if (left[i] === right[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i += 1;
    else j += 1;
  }
  return pairs;
}
