/** A run of accesses up to some point: what was touched when, and which lines the cache holds. */

import type { AccessBuffer, AccessSite } from "../../python/wire";
import { type Frame, frame } from "./grid";
import { type Accesses, elementsOf, type Hits } from "./report";

export class Replay {
  /** How many accesses were made. */
  position = 0;
  /** For each buffer and element the number, from 1, of its last access; 0 for none. */
  readonly last: Uint32Array[];
  /** For each buffer its hits and misses. */
  readonly counts: { hits: number; misses: number }[];
  private readonly held: Uint8Array;

  constructor(
    readonly buffers: AccessBuffer[],
    readonly sites: AccessSite[],
    readonly accesses: Accesses,
    readonly hits: Hits,
    readonly lineBytes: number,
  ) {
    this.last = buffers.map(({ shape }) => new Uint32Array(elementsOf(shape)));
    this.counts = buffers.map(() => ({ hits: 0, misses: 0 }));
    const ends = buffers.map(({ base, shape, itemBytes }) => base + elementsOf(shape) * itemBytes);
    this.held = new Uint8Array(Math.ceil(Math.max(0, ...ends) / lineBytes));
  }

  get count(): number {
    return this.accesses.count;
  }

  /** Make accesses, or take them back, until `position` are made. */
  goTo(position: number): void {
    const target = Math.min(Math.max(0, Math.round(position)), this.count);
    if (target < this.position) {
      this.position = 0;
      this.held.fill(0);
      for (const each of this.last) each.fill(0);
      for (const each of this.counts) each.hits = each.misses = 0;
    }
    while (this.position < target) this.step();
  }

  /** The position just after the next miss, or the end. */
  nextMiss(): number {
    const next = this.hits.hit.indexOf(0, this.position);
    return next < 0 ? this.count : next + 1;
  }

  /** The line of an access. */
  lineOf(access: number): number {
    return this.line(this.bufferOf(access), this.accesses.element[access]!);
  }

  /** The buffer of an access; -1 before the first. */
  bufferOf(access: number): number {
    return this.sites[this.accesses.site[access]!]?.buffer ?? -1;
  }

  /** Whether the cache holds the line of an element. */
  holds(buffer: number, element: number): boolean {
    return this.held[this.line(buffer, element)] === 1;
  }

  /** The part of each buffer that is worth drawing. */
  frames(): Frame[] {
    return this.buffers.map(({ shape }, buffer) => frame(shape, this.touched(buffer)));
  }

  private *touched(buffer: number): Generator<number> {
    for (let at = 0; at < this.count; at++)
      if (this.bufferOf(at) === buffer) yield this.accesses.element[at]!;
  }

  private line(buffer: number, element: number): number {
    const { base, itemBytes } = this.buffers[buffer]!;
    return Math.floor((base + element * itemBytes) / this.lineBytes);
  }

  private step(): void {
    const at = this.position;
    const buffer = this.bufferOf(at);
    if (this.hits.hit[at]) this.counts[buffer]!.hits += 1;
    else {
      this.counts[buffer]!.misses += 1;
      const evicted = this.hits.evicted[at]!;
      if (evicted >= 0) this.held[evicted] = 0;
      this.held[this.lineOf(at)] = 1;
    }
    this.position += 1;
    this.last[buffer]![this.accesses.element[at]!] = this.position;
  }
}
