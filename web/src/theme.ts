/** Light or dark: the reader's choice, else the system's. */

import { recall, remember } from "./storage";

export type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  const chosen = recall("theme");
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

/** Apply the theme and follow the system until the reader chooses by `button`. */
export function setUpTheme(button: HTMLElement): void {
  const apply = (): void => {
    document.documentElement.dataset.theme = currentTheme();
    for (const listener of listeners) listener();
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    const next: Theme = currentTheme() === "dark" ? "light" : "dark";
    const followsSystem = (next === "dark") === system.matches;
    remember("theme", followsSystem ? null : next);
    apply();
  });
  apply();
}

/** Call `listener` whenever the theme changes: for what cannot be styled by CSS alone. */
export function onThemeChange(listener: () => void): void {
  listeners.add(listener);
}
