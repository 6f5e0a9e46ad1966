/** Light or dark: the reader's choice, else the system's. */

import { signal } from "@preact/signals-core";
import { load, store } from "./storage";

export type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
/** What is applied, for what cannot be styled by CSS alone. */
export const appliedTheme = signal<Theme>("light");

/** What the page around a frame wants; it counts more than all else. */
let imposed: Theme | null = null;

export function currentTheme(): Theme {
  if (imposed) return imposed;
  const chosen = load("theme");
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

function apply(): void {
  document.documentElement.dataset.theme = currentTheme();
  appliedTheme.value = currentTheme();
}

/** Apply the theme and follow the system until the reader chooses by `button`. */
export function setUpTheme(button: HTMLElement): void {
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const next: Theme = currentTheme() === "dark" ? "light" : "dark";
    const followsSystem = (next === "dark") === system.matches;
    store("theme", followsSystem ? null : next);
    apply();
  });
  apply();
}

/** Apply the theme that the page around a frame names; any other name leaves it to the system. */
export function imposeTheme(name: string | null): void {
  imposed = name === "light" || name === "dark" ? name : system.matches ? "dark" : "light";
  apply();
}
