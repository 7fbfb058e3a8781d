import { acceptCompletion, autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { indentUnit, syntaxTree } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { search, searchKeymap } from "@codemirror/search";
import { RangeSetBuilder, type EditorState, type Extension, type TransactionSpec } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers, ViewPlugin, type DecorationSet, type Tooltip } from "@codemirror/view";
import { cspNonce } from "../../../app/nonce";
import { choicesIn, explain, typeOf, type Names } from "./complete";
import type { Finding } from "./findings";
import { TextModel } from "./model";
import type { Schema, Schemas } from "./schema";

/** What the editor knows; it may come later than the editor. */
export interface Knowledge {
  schemas: Schemas | undefined;
  names: Names;
}

// Colours of the page, so that the editor is dark where the page is.
const look = EditorView.theme({
  "&": { backgroundColor: "var(--mantine-color-body)", color: "var(--mantine-color-text)" },
  ".cm-content": { caretColor: "var(--mantine-color-text)", fontFamily: "var(--mantine-font-family-monospace)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": { backgroundColor: "var(--mantine-color-default)", color: "var(--mantine-color-dimmed)", borderRight: "1px solid var(--mantine-color-default-border)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--mantine-color-default-hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--mantine-primary-color-light-hover)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--mantine-color-body)", color: "var(--mantine-color-text)", border: "1px solid var(--mantine-color-default-border)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--mantine-primary-color-filled)", color: "var(--mantine-color-white)" },
  ".cm-yaml-key": { color: "var(--mantine-primary-color-light-color)" },
  ".cm-yaml-comment": { color: "var(--mantine-color-dimmed)" },
  ".cm-explanation": { padding: "6px 10px", maxWidth: "480px", whiteSpace: "pre-wrap" },
});

const marks: Record<string, Decoration> = { Key: Decoration.mark({ class: "cm-yaml-key" }), Comment: Decoration.mark({ class: "cm-yaml-comment" }) };

/** colours of keys and comments, in what is visible. */
const colours = ViewPlugin.define(
  (view) => ({
    decorations: coloursIn(view),
    update(update) {
      if (update.docChanged || update.viewportChanged || syntaxTree(update.startState) !== syntaxTree(update.state)) this.decorations = coloursIn(update.view);
    },
  }),
  { decorations: (plugin) => plugin.decorations },
);

function coloursIn(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from,
      to,
      enter: (node) => {
        const mark = marks[node.name];
        if (mark) builder.add(node.from, node.to, mark);
      },
    });
  }
  return builder.finish();
}

/** editorOf a text: its model, and how to tell the editor what it can offer. */
export function editorOf(text: string): { model: TextModel; know: (knowledge: Knowledge) => void } {
  let knowledge: Knowledge = { schemas: undefined, names: { waveforms: [], scenarios: [] } };
  const know = (more: Knowledge) => {
    knowledge = more;
  };
  return { model: new TextModel(text, extensionsOf(() => knowledge)), know };
}

/** keysId is the text beside the editor that says how the keyboard leaves it. */
export const keysId = "editor-keys";

/** extensionsOf the editor. */
function extensionsOf(knowledge: () => Knowledge): Extension {
  return [
    EditorView.cspNonce.of(cspNonce),
    EditorView.contentAttributes.of({ "aria-label": "YAML of the experiment", "aria-describedby": keysId, tabindex: "0" }),
    lineNumbers(),
    drawSelection(),
    highlightActiveLine(),
    yaml(),
    indentUnit.of("  "),
    colours,
    lintGutter(),
    search({ top: true }),
    autocompletion({ override: [(context) => complete(context, knowledge())], icons: false }),
    hoverTooltip((view, at) => tooltip(view.state, at, knowledge())),
    // Escape leaves the editor to whoever moves by Tab.
    keymap.of([{ key: "Tab", run: acceptCompletion }, indentWithTab, { key: "Escape", run: leave }, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    look,
  ];
}

function leave(view: EditorView): boolean {
  view.contentDOM.blur();
  return true;
}

function complete(context: CompletionContext, { schemas, names }: Knowledge): CompletionResult | null {
  if (!schemas || (!context.explicit && !context.matchBefore(/[\w-]+$/))) return null;
  const found = choicesIn(context.state.doc.toString(), context.pos, schemas, names);
  if (!found) return null;
  return { from: found.from, validFor: /^[\w./-]*$/, options: found.choices.map((choice) => ({ ...choice, type: "property" })) };
}

function tooltip(state: EditorState, at: number, { schemas }: Knowledge): Tooltip | null {
  const found = schemas && explain(state.doc.toString(), at, schemas);
  if (!found) return null;
  return {
    pos: found.from,
    end: found.to,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      dom.className = "cm-explanation";
      dom.textContent = explanation(found.name, found.schema);
      return { dom };
    },
  };
}

function explanation(name: string, schema: Schema): string {
  const lines = [`${name}: ${typeOf(schema)}`, schema.description ?? ""];
  if (schema.enum) lines.push(`One of ${schema.enum.map(String).join(", ")}.`);
  if (schema.default !== undefined) lines.push(`Default: ${typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default)}.`);
  return lines.filter((line) => line !== "").join("\n");
}

/** marking of findings at their lines. */
export function marking(state: EditorState, findings: readonly Finding[]): TransactionSpec {
  const diagnostics = findings.flatMap((finding): Diagnostic[] => {
    if (!finding.line || finding.line > state.doc.lines) return [];
    const line = state.doc.line(finding.line);
    const indent = line.text.length - line.text.trimStart().length;
    return [{ from: line.from + indent, to: line.to, severity: finding.warning ? "warning" : "error", message: finding.path ? `${finding.path}: ${finding.message}` : finding.message }];
  });
  return setDiagnostics(state, diagnostics);
}
