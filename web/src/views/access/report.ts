/** What Python tells about the accesses of a program, and its streams as numbers. */

import type { AccessLoop, AccessReport, AccessResult, AccessSite } from "../../python/wire";

/** The accesses of a run in order. */
export interface Accesses {
  count: number;
  /** The subscript that made each. */
  site: Uint16Array;
  /** The element touched, counted row by row. */
  element: Uint32Array;
  /** The iterations of the loops around, as digits of one number. */
  point: Float64Array;
}

export function accessesOf({ stream }: AccessReport): Accesses {
  return {
    count: stream.count,
    site: new Uint16Array(bytes(stream.site)),
    element: new Uint32Array(bytes(stream.element)),
    point: new Float64Array(bytes(stream.point)),
  };
}

/** For each access whether it hit, and the line that was evicted for it, or -1. */
export interface Hits {
  hit: Uint8Array;
  evicted: Int32Array;
}

export function hitsOf({ hit, evicted }: AccessResult): Hits {
  return { hit: new Uint8Array(bytes(hit)), evicted: new Int32Array(bytes(evicted)) };
}

/** Browsers that can decode by themselves are much quicker at it. */
const decoder = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

function bytes(base64: string): ArrayBuffer {
  if (decoder.fromBase64) return decoder.fromBase64(base64).buffer;
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) found[index] = text.charCodeAt(index);
  return found.buffer;
}

/** The loops' values at an access, outermost first. */
export function iterationsOf(loops: AccessLoop[], point: number): [name: string, value: number][] {
  let rest = point;
  return loops
    .toReversed()
    .map(({ name, low, extent }): [string, number] => {
      const value = low + (rest % extent);
      rest = Math.floor(rest / extent);
      return [name, value];
    })
    .reverse();
}

/** The indices of an element that is counted row by row. */
export function indices(shape: number[], element: number): number[] {
  let rest = element;
  return shape
    .toReversed()
    .map((extent) => {
      const index = rest % extent;
      rest = Math.floor(rest / extent);
      return index;
    })
    .reverse();
}

/** The stride of a subscript with its loop: "stride 16 in k". */
export function badgeText({ badge, loop }: Pick<AccessSite, "badge" | "loop">): string {
  return loop === null ? badge : `${badge} in ${loop}`;
}
