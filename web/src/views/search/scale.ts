/** Ranges of the search chart's axes. */

/**
 * A range for a logarithmic axis with some air, even around a single value.
 *
 * Its lower end has one significant digit: uPlot steps from there by powers of ten, and from
 * 0.096, say, it would round its way back to 0 and never arrive.
 */
export function logRange(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null || !(low > 0)) return [0.1, 10];
  const start = low / 1.6;
  const power = Math.floor(Math.log10(start));
  const digit = Math.max(1, Math.floor(start / 10 ** power));
  return [Number(`${digit}e${power}`), high * 1.6];
}
