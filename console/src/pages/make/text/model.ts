import { history, isolateHistory, redo, redoDepth, undo, undoDepth } from "@codemirror/commands";
import { EditorState, type Extension, type Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { changeBetween, edited, type Edit } from "./edits";
import { read, type Content } from "./read";

/** Snapshot of a text and what it holds. */
export interface Snapshot {
  text: string;
  content: Content;
  /** readable is the content of the last text without a mistake of YAML; forms show it. */
  readable: Content;
  undoable: boolean;
  redoable: boolean;
}

/** TextModel is the one text that form, drawing and editor change, with one history of undo. */
export class TextModel {
  private state: EditorState;
  private view: EditorView | undefined;
  private snapshot: Snapshot;
  /** what the form has changed last; empty after another change. */
  private last = "";
  private readonly listeners = new Set<() => void>();

  constructor(text: string, extensions: Extension = []) {
    this.state = EditorState.create({ doc: text, extensions: [history(), extensions] });
    const content = read(text);
    this.snapshot = { text, content, readable: content, undoable: false, redoable: false };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  readonly getSnapshot = (): Snapshot => this.snapshot;

  /** edit fields of the documents. */
  edit(edits: readonly Edit[]): void {
    // Each removal and renaming is a step of its own.
    const sets = edits.every(({ value }) => value !== undefined);
    this.replace(edited(this.snapshot.text, edits), sets ? edits.map((e) => e.path.join(".")).join(",") : "");
  }

  /** replace the text; what follows the same field becomes one step of undo. */
  replace(text: string, what = ""): void {
    const change = changeBetween(this.snapshot.text, text);
    if (!change) return;
    const annotations = what !== "" && what === this.last ? [] : [isolateHistory.of("before")];
    this.dispatch(this.state.update({ changes: change, annotations, userEvent: "input.type.form" })); // only what is typed can be joined
    this.last = what;
  }

  readonly undo = (): void => {
    undo({ state: this.state, dispatch: this.dispatch });
  };

  readonly redo = (): void => {
    redo({ state: this.state, dispatch: this.dispatch });
  };

  /** attach an editor to the text until the returned function is called. */
  attach(parent: HTMLElement): () => void {
    const view = new EditorView({
      state: this.state,
      parent,
      dispatchTransactions: (transactions) => {
        view.update(transactions);
        this.settle(view.state, transactions.some((t) => t.docChanged));
      },
    });
    this.view = view;
    return () => {
      if (this.view === view) this.view = undefined;
      view.destroy();
    };
  }

  /** dispatch a transaction, such as one that sets findings. */
  readonly dispatch = (transaction: Transaction): void => {
    if (this.view) this.view.dispatch(transaction);
    else this.settle(transaction.state, transaction.docChanged);
  };

  /** current is the editor's state. */
  get current(): EditorState {
    return this.state;
  }

  /** reveal a line in the editor. */
  reveal(line: number): void {
    const at = this.state.doc.line(Math.min(Math.max(1, line), this.state.doc.lines)).from;
    this.view?.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.view?.focus();
  }

  private settle(state: EditorState, changed: boolean): void {
    this.state = state;
    if (!changed) return;
    this.last = "";
    const text = state.doc.toString();
    const content = read(text);
    this.snapshot = { text, content, readable: content.problem ? this.snapshot.readable : content, undoable: undoDepth(state) > 0, redoable: redoDepth(state) > 0 };
    for (const listener of this.listeners) listener();
  }
}
