/** Numbers as readers like them. */

/** Seconds as milliseconds with three significant digits, without the unit. */
export function milliseconds(seconds: number): string {
  const ms = seconds * 1000;
  if (ms >= 100) return ms.toFixed(0);
  if (ms >= 10) return ms.toFixed(1);
  if (ms >= 1) return ms.toFixed(2);
  return ms.toPrecision(3).replace(/0+$/, "").replace(/\.$/, "");
}

/** How many times faster `seconds` is than `reference`, or slower. */
export function comparison(seconds: number, reference: number): string {
  const ratio = reference / seconds;
  const digits = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toFixed(1));
  return ratio >= 1 ? `${digits(ratio)}× faster` : `${digits(1 / ratio)}× slower`;
}

/** A duration of the page itself: "320 ms", "4.1 s", "2 min 5 s". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A number with three significant digits and nothing superfluous. */
export function short(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}

/** Seconds with the unit that suits them: "840 ns", "84.2 µs", "1.2 ms", "3 s". */
export function timing(seconds: number): string {
  const units: [number, string][] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ];
  const [size, unit] = units.find(([least]) => seconds >= least) ?? [1e-9, "ns"];
  return `${short(seconds / size)} ${unit}`;
}
