/**
 * What decides about programs, taken before any of them runs: they may replace whatever is global.
 */

/** A method as a function whose first argument is the object. */
export function uncurried<This, Rest extends unknown[], Result>(
  method: (this: This, ...rest: Rest) => Result,
): (of: This, ...rest: Rest) => Result {
  return Function.prototype.call.bind(method) as (of: This, ...rest: Rest) => Result;
}

/** The getter of a property as a function of the object. */
export function getter<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
): (of: T) => T[K] {
  return uncurried(Object.getOwnPropertyDescriptor(prototype, name)!.get!) as (of: T) => T[K];
}

/** What came with a message. Another getter would see the event, and so the port that it came from. */
export const dataOf: <T>(event: MessageEvent<T>) => T = getter(MessageEvent.prototype, "data");

/** Keep an event from all other listeners. */
export const stop: (event: Event) => void = uncurried(Event.prototype.stopImmediatePropagation);
