/** The program editor: CodeMirror with Python, underlined errors, and text that is stored. */

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  bracketMatching,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import {
  type Action,
  type Diagnostic as LintMark,
  lintGutter,
  lintKeymap,
  setDiagnostics,
} from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { Diagnostic, Fix, TextRange } from "../python/wire";
import { help } from "./help/extensions";

interface EditorOptions {
  parent: HTMLElement;
  onRun: () => void;
  onChange: (text: string) => void;
  /** The text was scrolled, and can be seen. */
  onScroll?: () => void;
  /** What screen readers call it. */
  label?: string;
}

const LABEL = "Python program. Escape, then Tab, leaves the editor.";

export class Editor {
  private readonly view: EditorView;
  /** Text, undo history and place of the files that are not shown. */
  private readonly states = new Map<string, EditorState>();
  private readonly extensions: Extension;
  private name = "";

  constructor({ parent, onRun, onChange, onScroll, label = LABEL }: EditorOptions) {
    const run = (): boolean => {
      onRun();
      return true;
    };
    this.extensions = [
      keymap.of([{ key: "Mod-Enter", run, preventDefault: true }]),
      lineNumbers(),
      lintGutter(),
      highlightActiveLineGutter(),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      indentOnInput(),
      indentUnit.of("    "),
      bracketMatching(),
      closeBrackets(),
      autocompletion(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      python(),
      help(),
      syntaxHighlighting(classHighlighter),
      keymap.of([
        ...closeBracketsKeymap,
        ...defaultKeymap,
        ...searchKeymap,
        ...historyKeymap,
        ...completionKeymap,
        ...lintKeymap,
        indentWithTab,
      ]),
      EditorView.contentAttributes.of({
        "aria-label": label,
        spellcheck: "false",
        tabindex: "0",
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ];
    this.view = new EditorView({ parent });
    const { scrollDOM } = this.view;
    if (onScroll) scrollDOM.addEventListener("scroll", () => scrollDOM.clientHeight && onScroll());
  }

  /** Pixels that the text is scrolled by. */
  get scroll(): number {
    return this.view.scrollDOM.scrollTop;
  }

  set scroll(top: number) {
    this.view.scrollDOM.scrollTop = top;
  }

  /** Show a file. One shown before comes back with its undo history, unless its text is another. */
  open(name: string, text: string): void {
    if (this.name) this.states.set(this.name, this.view.state);
    const state = this.states.get(name);
    this.name = name;
    this.view.setState(
      state?.doc.toString() === text
        ? state
        : EditorState.create({ doc: text, extensions: this.extensions }),
    );
  }

  /** Let go of a file's history. */
  forget(name: string): void {
    this.states.delete(name);
    if (this.name === name) this.name = "";
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Replace everything in one step, so that one undo brings the old text back. */
  replace(text: string): void {
    const { length } = this.view.state.doc;
    this.view.dispatch({
      changes: { from: 0, to: length, insert: text },
      selection: { anchor: 0 },
    });
  }

  /** Append code at the end and show it. */
  append(code: string): void {
    const { doc } = this.view.state;
    const gap = doc.length && !doc.toString().endsWith("\n\n") ? "\n\n" : "";
    this.view.dispatch({
      changes: { from: doc.length, insert: gap + code },
      selection: { anchor: doc.length + gap.length },
      effects: EditorView.scrollIntoView(doc.length + gap.length, { y: "start", yMargin: 40 }),
    });
    this.view.focus();
  }

  /** Add text at the end; the cursor and what is seen stay. */
  addBelow(text: string): void {
    const { doc } = this.view.state;
    this.view.dispatch({ changes: { from: doc.length, insert: `\n\n${text}` } });
  }

  focus(): void {
    this.view.focus();
  }

  goTo(line: number, column: number): void {
    const { doc } = this.view.state;
    const anchor = offset(doc, line, column);
    this.view.dispatch({
      selection: { anchor },
      effects: EditorView.scrollIntoView(anchor, { y: "center" }),
    });
    this.view.focus();
  }

  /** Underline the ranges, without moving what is seen: its writer is writing. */
  mark(diagnostics: Diagnostic[]): void {
    const { state } = this.view;
    const marks = diagnostics.map((diagnostic) => toMark(state.doc, diagnostic));
    this.view.dispatch(setDiagnostics(state, marks));
  }

  /** Underline the ranges; an empty list takes all underlines away. */
  underline(diagnostics: Diagnostic[]): void {
    this.mark(diagnostics);
    const [first] = diagnostics;
    if (!first) return;
    const { from } = toMark(this.view.state.doc, first);
    this.view.dispatch({
      effects: EditorView.scrollIntoView(from, { y: "nearest", yMargin: 60 }),
    });
  }
}

/** A diagnostic as a range of the text, clipped to it and never empty where that can be helped. */
export function toMark(doc: Text, { message, severity, fix, ...range }: Diagnostic): LintMark {
  const { from, to } = rangeOf(doc, range);
  const atLine = doc.lineAt(from);
  const visible =
    to > from
      ? { from, to }
      : from < atLine.to
        ? { from, to: from + 1 }
        : { from: Math.max(atLine.from, from - 1), to: from };
  return { ...visible, message, severity, actions: fix ? [toAction(fix)] : [] };
}

/** A fix as a button of the message; it is applied where the text is still what it was made for. */
function toAction({ title, text: insert, ...range }: Fix): Action {
  return {
    name: title,
    apply(view) {
      const changes = { ...rangeOf(view.state.doc, range), insert };
      view.dispatch({ changes, userEvent: "input.fix" });
    },
  };
}

function rangeOf(doc: Text, { line, column, endLine, endColumn }: TextRange) {
  const from = offset(doc, line, column);
  return { from, to: Math.max(from, offset(doc, endLine, endColumn)) };
}

function offset(doc: Text, line: number, column: number): number {
  const at = doc.line(Math.min(Math.max(1, line), doc.lines));
  return Math.min(at.from + Math.max(0, column), at.to);
}
