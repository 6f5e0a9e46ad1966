/** Completion, hover texts and signatures for the editor, from the API's table and live names. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { pythonLanguage } from "@codemirror/lang-python";
import { type EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import {
  EditorView,
  hoverTooltip,
  keymap,
  showTooltip,
  type Tooltip,
  type TooltipView,
} from "@codemirror/view";
import { element } from "../../dom";
import { activeParameter, openCall, parametersOf } from "./calls";
import "./help.css";
import type { LiveNames } from "../../python/wire";
import { type ApiTable, type Member, type Members, Names, NO_NAMES } from "./table";

/** Calls whose first string names something of the program, and what. */
const STRINGS: [pattern: RegExp, kind: "blocks" | "functions"][] = [
  [
    /\b(?:get_s?block|get_loops|get_child_blocks|get_producers|get_consumers)\(\s*(?:name\s*=\s*)?(["'])(\w*)$/,
    "blocks",
  ],
  [/\b(?:get_s?block)\([^()]*?(?:,\s*|func_name\s*=\s*)(["'])(\w*)$/, "functions"],
  [/\b(?:get_global_var|work_on|time_evaluator|get_function)\(\s*(["'])(\w*)$/, "functions"],
  [/\b(?:vm|mod|module|ex|lib|rt_lib\w*)\[\s*(["'])(\w*)$/, "functions"],
];

const ICONS: Record<Member[0], string> = {
  module: "namespace",
  class: "class",
  function: "function",
  value: "property",
};

let table: Promise<ApiTable> | null = null;
let loaded: ApiTable | null = null;
let live: LiveNames = NO_NAMES;

/** Offer the names of the program that ran last. */
export function setLiveNames(names: LiveNames): void {
  live = names;
}

/** The table is fetched when an editor is used for the first time. */
function fetchTable(): Promise<ApiTable> {
  table ??= fetch(new URL("api.json", document.baseURI))
    .then((response) => response.json() as Promise<ApiTable>)
    .then((api) => (loaded = api));
  table.catch(() => (table = null));
  return table;
}

export function help(): Extension {
  return [
    pythonLanguage.data.of({ autocomplete: complete }),
    hoverTooltip((view, position, side) => hover(view.state, position, side)),
    signature,
    lateSignature,
    keymap.of([
      {
        key: "Escape",
        run: (view) => {
          if (!view.state.field(signature).tooltip) return false;
          view.dispatch({ effects: hide.of(null) });
          return true;
        },
      },
    ]),
  ];
}

async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const { state, pos } = context;
  const line = state.doc.lineAt(pos);
  const before = state.sliceDoc(Math.max(line.from, pos - 300), pos);
  for (const [pattern, kind] of STRINGS) {
    const match = pattern.exec(before);
    if (match)
      return result(
        pos - match[2]!.length,
        live[kind].map((label) => ({ label, type: "text", boost: 9 })),
      );
  }
  const dotted = /([A-Za-z_][\w.]*)\.(\w*)$/.exec(before);
  const importing = /^\s*from\s+([\w.]+)\s+import\s+(?:[\w\s,]*,\s*)?(\w*)$/.exec(before);
  if (!dotted && !importing) return completeName(context);
  const api = await fetchTable();
  const names = new Names(api, state.doc.toString(), live);
  const [, owner, typed] = (importing ?? dotted)!;
  const members = importing
    ? api.modules[owner!.replace(/^mlcweb\b/, "tvm")]
    : names.membersOf(owner!);
  return members ? result(pos - typed!.length, options(members)) : null;
}

/** Variables of the last run; those of the text and Python's own names come from the language. */
function completeName(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[A-Za-z_]\w*$/);
  if (!word && !context.explicit) return null;
  const variables = Object.entries(live.variables);
  return result(
    word?.from ?? context.pos,
    variables.map(([label, type]) => ({ label, type: "variable", detail: type ?? undefined })),
  );
}

function result(from: number, options: Completion[]): CompletionResult | null {
  return options.length ? { from, options, validFor: /^\w*$/ } : null;
}

function options(members: Members): Completion[] {
  return Object.entries(members).map(([label, [kind, parameters, text]]) => ({
    label,
    type: ICONS[kind],
    detail: parameters.length < 40 ? parameters : "(…)",
    info: text || parameters ? () => description(label, parameters, text) : undefined,
  }));
}

function description(name: string, parameters: string, text: string): HTMLElement {
  return element(
    "div",
    { class: "api-help" },
    element("code", {}, name + parameters),
    text ? element("p", {}, text) : null,
  );
}

function hover(
  state: EditorState,
  position: number,
  side: -1 | 1,
): Tooltip | null | Promise<Tooltip | null> {
  const word = state.wordAt(side < 0 ? Math.max(0, position - 1) : position);
  if (!word) return null;
  const line = state.doc.lineAt(word.from);
  const owner = /[A-Za-z_][\w.]*\.$/.exec(state.sliceDoc(line.from, word.from))?.[0] ?? "";
  const name = state.sliceDoc(word.from, word.to);
  return fetchTable().then((api) => {
    const member = new Names(api, state.doc.toString(), live).find(owner + name);
    if (!member || (!member[1] && !member[2])) return null;
    return {
      pos: word.from,
      end: word.to,
      above: true,
      create: (): TooltipView => ({ dom: description(owner + name, member[1], member[2]) }),
    };
  });
}

const hide = StateEffect.define<null>();
/** The table has arrived. */
const arrived = StateEffect.define<null>();

interface Shown {
  tooltip: Tooltip | null;
  /** Offset of a call whose signature was sent away. */
  hidden: number | null;
}

const signature = StateField.define<Shown>({
  create: () => ({ tooltip: null, hidden: null }),
  update(shown, transaction) {
    const { state } = transaction;
    if (transaction.effects.some((effect) => effect.is(hide))) {
      return { tooltip: null, hidden: shown.tooltip?.pos ?? null };
    }
    const late = transaction.effects.some((effect) => effect.is(arrived));
    if (!transaction.docChanged && !transaction.selection && !late) return shown;
    // It appears while a call is written, not when the cursor passes by.
    if (!shown.tooltip && !transaction.isUserEvent("input") && !late) return shown;
    const tooltip = signatureAt(state);
    if (tooltip && tooltip.pos === shown.hidden) return { tooltip: null, hidden: shown.hidden };
    return { tooltip, hidden: null };
  },
  provide: (field) => showTooltip.from(field, ({ tooltip }) => tooltip),
});

/** Shows the signature of a call that was written before the table was there. */
const lateSignature = EditorView.updateListener.of(({ view, transactions }) => {
  if (loaded || !transactions.some((each) => each.isUserEvent("input"))) return;
  fetchTable().then(
    () => view.dispatch({ effects: arrived.of(null) }),
    () => undefined,
  );
});

function signatureAt(state: EditorState): Tooltip | null {
  const { main } = state.selection;
  if (!main.empty) return null;
  const call = openCall(state.sliceDoc(Math.max(0, main.head - 2000), main.head));
  if (!call || !loaded) return null;
  const member = new Names(loaded, state.doc.toString(), live).find(call.callee);
  if (!member?.[1] || member[0] === "module") return null;
  const [, parameters, text] = member;
  const active = activeParameter(parameters, call);
  const at = Math.max(0, main.head - 2000) + call.from;
  return {
    pos: at,
    above: true,
    create: (): TooltipView => {
      const code = element("code", {}, `${call.callee}(`);
      for (const [index, parameter] of parametersOf(parameters).entries()) {
        code.append(
          index ? ", " : "",
          index === active ? element("strong", {}, parameter.text) : parameter.text,
        );
      }
      code.append(")");
      return {
        dom: element(
          "div",
          { class: "api-help", "data-testid": "signature" },
          code,
          text ? element("p", {}, text) : null,
        ),
      };
    },
  };
}
