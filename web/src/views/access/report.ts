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
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer;
}

/** The indices of an element that is counted row by row; they are its digits in the bases `shape`. */
export function indices(shape: number[], element: number): number[] {
  let rest = element;
  return shape
    .toReversed()
    .map((extent) => {
      const digit = rest % extent;
      rest = Math.floor(rest / extent);
      return digit;
    })
    .reverse();
}

/** The loops' values at an access, outermost first. */
export function iterationsOf(loops: AccessLoop[], point: number): [name: string, value: number][] {
  const extents = loops.map(({ extent }) => extent);
  const iterations = indices(extents, point);
  return loops.map(({ name, low }, at) => [name, low + iterations[at]!]);
}

/** The stride of a subscript with its loop: "stride 16 in k". */
export function badgeText({ badge, loop }: Pick<AccessSite, "badge" | "loop">): string {
  return loop === null ? badge : `${badge} in ${loop}`;
}

export function elementsOf(shape: number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}
