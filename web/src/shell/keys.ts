/** How keys are written on this system. */

/** What stands before a letter for the key that commands take: "⌘" or "Ctrl ". */
export const COMMAND = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl ";
