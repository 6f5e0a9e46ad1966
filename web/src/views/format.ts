/** Numbers as readers like them. */

/** A count as readers write it: "1,200". */
export function whole(value: number): string {
  return value.toLocaleString("en");
}

/** A count and its noun: "1 line", "2 lines". */
export function counted(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A number with three significant digits and nothing superfluous. */
export function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** How many times faster `seconds` is than `reference`, or slower, where the first decimal tells. */
export function comparison(seconds: number, reference: number): string {
  const ratio = reference / seconds;
  if (Math.max(ratio, 1 / ratio) < 1.05) return "as fast";
  const digits = (value: number): string => value.toFixed(value >= 10 ? 0 : 1);
  return ratio >= 1 ? `${digits(ratio)}× faster` : `${digits(1 / ratio)}× slower`;
}

/** A duration of the page itself: "320 ms", "4.1 s", "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** `value` in the largest unit of which it has at least one; the last unit is for all that is less. */
function scaled(value: number, units: [size: number, unit: string][]): string {
  const [size, unit] = units.find(([least]) => value >= least) ?? units.at(-1)!;
  return `${short(value / size)} ${unit}`;
}

/** Seconds with the unit that suits them: "840 ns", "84.2 µs", "1.2 ms", "3 s". */
export function timing(seconds: number): string {
  return scaled(seconds, [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ]);
}

/** Bytes: "512 B", "16 KiB". */
export function bytes(count: number): string {
  return scaled(count, [
    [1024 ** 2, "MiB"],
    [1024, "KiB"],
    [1, "B"],
  ]);
}

/** A large number: "4.19 M", "128 k". */
export function large(count: number, unit = ""): string {
  return scaled(count, [
    [1e9, `G${unit}`],
    [1e6, `M${unit}`],
    [1e3, `k${unit}`],
    [1, unit],
  ]).trim();
}

/** Operations a second: "26.1 GFLOPS". */
export function gflops(rate: number): string {
  return `${short(rate / 1e9)} GFLOPS`;
}

/** A share in percent; only all is 100. */
export function percent(part: number, all: number): string {
  const share = (100 * part) / all;
  if (!all) return "–";
  return `${part < all && share > 99.9 ? "99.9" : short(Math.round(share * 10) / 10)} %`;
}
