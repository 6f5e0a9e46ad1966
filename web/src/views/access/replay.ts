/** A run of accesses up to some point: what was touched when, and which lines the cache holds. */

import type { AccessBuffer, AccessSite } from "../../python/wire";
import type { Accesses, Hits } from "./report";

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
    const end = Math.max(
      0,
      ...buffers.map((buffer) => buffer.base + elementsOf(buffer.shape) * buffer.itemBytes),
    );
    this.held = new Uint8Array(Math.ceil(end / lineBytes));
  }

  get count(): number {
    return this.accesses.count;
  }

  /** Make accesses, or take them back, until `position` are made. */
  goTo(position: number): void {
    const target = Math.min(Math.max(0, Math.round(position)), this.count);
    if (target < this.position) this.clear();
    while (this.position < target) this.step();
  }

  /** The position just after the next miss, or the end. */
  nextMiss(): number {
    let at = this.position;
    while (at < this.count && this.hits.hit[at]) at += 1;
    return Math.min(at + 1, this.count);
  }

  /** The line of an access. */
  lineOf(access: number): number {
    const { base, itemBytes } = this.buffers[this.bufferOf(access)]!;
    return Math.floor((base + this.accesses.element[access]! * itemBytes) / this.lineBytes);
  }

  bufferOf(access: number): number {
    return this.sites[this.accesses.site[access]!]!.buffer;
  }

  /** Whether the cache holds the line of an element. */
  holds(buffer: number, element: number): boolean {
    const { base, itemBytes } = this.buffers[buffer]!;
    return this.held[Math.floor((base + element * itemBytes) / this.lineBytes)] === 1;
  }

  private step(): void {
    const at = this.position;
    const buffer = this.bufferOf(at);
    if (this.hits.hit[at]) this.counts[buffer]!.hits += 1;
    else {
      this.counts[buffer]!.misses += 1;
      const gone = this.hits.evicted[at]!;
      if (gone >= 0) this.held[gone] = 0;
      this.held[this.lineOf(at)] = 1;
    }
    this.position += 1;
    this.last[buffer]![this.accesses.element[at]!] = this.position;
  }

  private clear(): void {
    this.position = 0;
    this.held.fill(0);
    for (const each of this.last) each.fill(0);
    for (const each of this.counts) each.hits = each.misses = 0;
  }
}

export function elementsOf(shape: number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}
