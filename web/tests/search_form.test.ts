import { expect, test, vi } from "vitest";
import { SearchForm } from "../src/views/search/form";

vi.stubGlobal("navigator", { hardwareConcurrency: 8 });

const nothing = (): void => undefined;
const form = (): SearchForm => new SearchForm({ start: nothing, pause: nothing, stop: nothing });
const modules = [
  { name: "MyModule", functions: ["main"], model: false },
  { name: "Net", functions: ["linear0", "relu0"], model: true },
];

test("a program's own schedule function is the first choice", () => {
  const search = form();
  expect(search.hasModules).toBe(false);
  search.offer([], modules);
  expect(search.settings()).toMatchObject({ strategy: "evolutionary", scheduleFunction: null });
  search.offer(["schedule_mm", "stochastic_schedule_mm"], modules);
  expect(search.settings()).toMatchObject({
    module: "MyModule",
    function: "main",
    strategy: "function",
    scheduleFunction: "stochastic_schedule_mm",
  });
});

test("a link's settings wait for the program that they are for", () => {
  const search = form();
  const linked = { module: "Net", function: "relu0", strategy: "random", seconds: 12, seed: 3 };
  search.restore(linked);
  expect(search.state()).toEqual(linked);
  search.offer([], modules);
  expect(search.settings()).toMatchObject({ ...linked, trials: null });
  expect(search.isModel).toBe(true);
});

test("what a link has wrong is left out, and numbers keep to their bounds", () => {
  const search = form();
  search.offer([], modules);
  search.restore({ module: "Gone", strategy: "guess", trials: 1e9, seed: -4, workers: "many" });
  expect(search.settings()).toMatchObject({
    module: "MyModule",
    strategy: "evolutionary",
    trials: 100_000,
    seed: 0,
    workers: 1,
  });
  search.restore(7);
  expect(search.settings().trials).toBe(100_000);
});
