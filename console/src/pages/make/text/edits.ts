import { isAlias, isCollection, isMap, isScalar, isSeq, stringify, visit, type Document, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import { documentsOf, isRounded, plainOf } from "./read";
import { at, equal, withValue, type Path, type Step } from "./values";

/** An edit of one of a text's documents. */
export interface Edit {
  /** document, by its place in the text. */
  document: number;
  path: Path;
  /** value that the field gets; undefined removes it. */
  value?: unknown;
  /** rename gives the field another name, and keeps its value and place. */
  rename?: string;
}

/** edited returns a text after edits. Comments, order and layout of the rest stay. */
export function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce(editedOnce, text);
}

function editedOnce(text: string, edit: Edit): string {
  const document = documentsOf(text)[edit.document];
  const before = document && document.errors.length === 0 ? plainOf(document) : undefined;
  if (!document || before === undefined) return text;
  const after = edit.rename === undefined ? withValue(before, edit.path, edit.value) : renamed(before, edit.path, edit.rename);
  if (equal(before, after)) return text;
  const own = ownEdit(document, edit, before, after);
  const patched = new Patcher(text, document).patch(own);
  if (patched !== undefined && means(patched, own.document, after)) return patched;
  return rewritten(text, document, own);
}

/** ownEdit copies what an alias or a merge brings, with the edit in it, as others name the anchor too. */
function ownEdit(document: Document.Parsed, edit: Edit, before: unknown, after: unknown): Edit {
  for (let length = 1; length <= edit.path.length; length++) {
    const path = edit.path.slice(0, length);
    const node = nodeAt(document.contents, path);
    const isAliased = isAlias(node) && length < edit.path.length;
    const isMerged = node === undefined && at(before, path) !== undefined;
    if (!isAliased && !isMerged) continue;
    const whole = at(after, path) === undefined ? path.slice(0, -1) : path;
    return { document: edit.document, path: whole, value: at(after, whole) };
  }
  return edit;
}

function means(text: string, place: number, wanted: unknown): boolean {
  const document = documentsOf(text)[place];
  return document !== undefined && document.errors.length === 0 && equal(plainOf(document), wanted);
}

function renamed(value: unknown, path: Path, name: string): unknown {
  const old = path.at(-1);
  const parent = at(value, path.slice(0, -1));
  if (typeof old !== "string" || typeof parent !== "object" || parent === null) return value;
  return withValue(value, path.slice(0, -1), Object.fromEntries(Object.entries(parent).map(([key, inner]) => [key === old ? name : key, inner as unknown])));
}

/** rewritten is the way without patches: the whole document is rewritten, so that its layout may change but no comment is lost. */
function rewritten(text: string, document: Document.Parsed, edit: Edit): string {
  const [from, , to] = document.range;
  if (edit.rename !== undefined) {
    const pair = pairAt(document.contents, edit.path);
    if (pair && isScalar(pair.key)) pair.key.value = edit.rename;
  } else if (edit.value === undefined) document.deleteIn(edit.path);
  else document.setIn(edit.path, document.createNode(edit.value, { flow: true }));
  visit(document, { Scalar: (_, node) => { if (isRounded(node)) node.value = BigInt(node.source); } });
  const whole = document.toString({ lineWidth: 0, flowCollectionPadding: false, verifyAliasOrder: false }); // read() says which alias has lost its anchor
  return text.slice(0, from) + whole.slice(text.slice(from).startsWith("---") ? 0 : skipStart(whole)) + text.slice(to);
}

function skipStart(whole: string): number {
  return whole.startsWith("---\n") ? 4 : 0;
}

function pairAt(root: unknown, path: Path): Pair<Node, Node | null> | undefined {
  const parent = nodeAt(root, path.slice(0, -1));
  return isMap(parent) ? pairsOf(parent).find((pair) => keyOf(pair) === String(path.at(-1))) : undefined;
}

/** nodeAt a path below a node; undefined if there is none. */
export function nodeAt(root: unknown, path: Path): Node | null | undefined {
  let found = root as Node | null | undefined;
  for (const step of path) {
    if (isMap(found) && typeof step === "string") found = pairsOf(found).find((pair) => keyOf(pair) === step)?.value;
    else if (isSeq(found) && typeof step === "number") found = found.items[step] as Node | undefined;
    else return undefined;
  }
  return found;
}

export function pairsOf(map: YAMLMap): Pair<Node, Node | null>[] {
  return map.items as Pair<Node, Node | null>[];
}

export function keyOf(pair: Pair<Node, Node | null>): string {
  return isScalar(pair.key) ? String(pair.key.value) : "";
}

/** Patcher changes only the characters that an edit is about. It returns undefined where it knows no way. */
class Patcher {
  constructor(
    private readonly text: string,
    private readonly document: Document.Parsed,
  ) {}

  patch(edit: Edit): string | undefined {
    const { path, value, rename } = edit;
    if (path.length === 0) return undefined;
    if (rename !== undefined) return this.rename(path, rename);
    const node = nodeAt(this.document.contents, path);
    if (value === undefined) return this.remove(path);
    return node === undefined ? this.add(path, value) : this.replace(path, node, value);
  }

  private splice(from: number, to: number, insert: string): string {
    return this.text.slice(0, from) + insert + this.text.slice(to);
  }

  private rename(path: Path, name: string): string | undefined {
    const range = pairAt(this.document.contents, path)?.key.range;
    return range ? this.splice(range[0], range[1], flowText(name)) : undefined;
  }

  private replace(path: Path, node: Node | null, value: unknown): string | undefined {
    if (!node?.range) return undefined;
    const [from, to] = node.range;
    if (isCollection(node) && !node.flow) return this.replaceBlock(path, node, value);
    if (isScalar(node) && (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED")) return this.replaceLines(from, to, value);
    if (from === to) return this.splice(from, to, (/\s$/.test(this.text.slice(0, from)) ? "" : " ") + flowText(value));
    return this.splice(from, to, flowText(value));
  }

  /** replaceLines of a text after |. Another indicator, or a comment beside it, forbids it. */
  private replaceLines(from: number, to: number, value: unknown): string | undefined {
    const indent = /^\|[+-]?\n\n*( +)/.exec(this.text.slice(from, to))?.[1];
    if (indent === undefined || typeof value !== "string") return undefined;
    const lines = value.replace(/\n$/, "").split("\n").map((line) => (line === "" ? "" : indent + line));
    return this.splice(from, this.contentEnd(to), `|${value.endsWith("\n") ? "" : "-"}\n${lines.join("\n")}`);
  }

  /** replaceBlock puts a value on the line of its key. Comments within would be lost, so that they forbid it. */
  private replaceBlock(path: Path, node: Node, value: unknown): string | undefined {
    const range = node.range;
    const key = pairAt(this.document.contents, path)?.key.range;
    if (!range || !key) return undefined;
    const colon = this.text.indexOf(":", key[1]);
    const end = this.contentEnd(range[1]);
    if (colon < 0 || this.text.slice(colon, end).includes("#")) return undefined;
    return this.splice(colon + 1, end, ` ${flowText(value)}`);
  }

  private add(path: Path, value: unknown): string | undefined {
    let depth = path.length - 1;
    while (depth > 0 && !nodeAt(this.document.contents, path.slice(0, depth))) depth--;
    const parent = nodeAt(this.document.contents, path.slice(0, depth));
    const step = path[depth];
    if (step === undefined) return undefined;
    const wrapped = wrap(path.slice(depth + 1), value);
    const lines = isCollection(parent) && !parent.flow && hasLines(wrapped);
    if (isMap(parent) && typeof step === "string") return this.addEntry(parent, lines ? blockText({ [step]: wrapped }) : `${flowText(step)}: ${flowText(wrapped)}`, pairsOf(parent).map(endOfPair));
    if (isSeq(parent) && typeof step === "number") {
      const ends = parent.items.map((item) => (item as Node).range?.[1] ?? -1);
      return this.addEntry(parent, lines ? blockText([wrapped]) : (parent.flow ? "" : "- ") + flowText(wrapped), ends);
    }
    return undefined;
  }

  private addEntry(parent: YAMLMap | YAMLSeq, entry: string, ends: number[]): string | undefined {
    if (!parent.range) return undefined;
    const last = ends.at(-1);
    if (parent.flow) {
      if (last === undefined) return this.splice(parent.range[0] + 1, parent.range[1] - 1, entry);
      return last < 0 ? undefined : this.splice(last, last, `, ${entry}`);
    }
    if (last === undefined || last < 0) return undefined;
    const end = this.lineEnd(this.contentEnd(last));
    const start = `\n${" ".repeat(this.column(parent.range[0]))}`;
    return this.splice(end, end, start + entry.replaceAll(/\n(?!\n)/g, start));
  }

  private remove(path: Path): string | undefined {
    const parent = nodeAt(this.document.contents, path.slice(0, -1));
    const step = path.at(-1);
    if (!isCollection(parent) || !parent.range || step === undefined) return undefined;
    const spans = spansOf(parent);
    const place = isMap(parent) ? pairsOf(parent).findIndex((pair) => keyOf(pair) === step) : Number(step);
    const span = spans[place];
    if (!span) return undefined;
    if (spans.length === 1) return this.empty(path.slice(0, -1), parent);
    if (parent.flow) {
      const before = spans[place - 1];
      const after = spans[place + 1];
      return before ? this.splice(before[1], span[1], "") : after ? this.splice(span[0], after[0], "") : undefined;
    }
    return this.removeLines(span, isSeq(parent));
  }

  private empty(path: Path, parent: YAMLMap | YAMLSeq): string | undefined {
    const none = isMap(parent) ? {} : [];
    if (parent.flow && parent.range) return this.splice(parent.range[0], parent.range[1], flowText(none));
    return this.replaceBlock(path, parent, none);
  }

  private removeLines([from, to]: [number, number], element: boolean): string | undefined {
    let start = this.text.lastIndexOf("\n", from - 1) + 1;
    const before = this.text.slice(start, from);
    if (!(element ? /^\s*-\s+$/ : /^\s*$/).test(before)) return undefined; // something else stands before it on the line
    const end = this.lineEnd(this.contentEnd(to));
    if (end === this.text.length && start > 0) start--;
    return this.splice(start, Math.min(end + 1, this.text.length), "");
  }

  /** contentEnd is where a node's characters end, without the white space after it. */
  private contentEnd(end: number): number {
    return this.text.slice(0, end).trimEnd().length;
  }

  private lineEnd(from: number): number {
    const end = this.text.indexOf("\n", from);
    return end < 0 ? this.text.length : end;
  }

  private column(offset: number): number {
    return offset - (this.text.lastIndexOf("\n", offset - 1) + 1);
  }
}

function endOfPair(pair: Pair<Node, Node | null>): number {
  return Math.max(pair.key.range?.[1] ?? -1, pair.value?.range?.[1] ?? -1);
}

function spansOf(parent: YAMLMap | YAMLSeq): [number, number][] {
  if (isMap(parent)) return pairsOf(parent).map((pair) => [pair.key.range?.[0] ?? 0, endOfPair(pair)]);
  return parent.items.map((item) => [(item as Node).range?.[0] ?? 0, (item as Node).range?.[1] ?? 0]);
}

function wrap(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, step: Step) => (typeof step === "number" ? [inner] : { [step]: inner }), value);
}

/** flowText writes a value on one line. Words that YAML 1.1 reads as truth values or numbers get quotes, as Go reads that version. */
export function flowText(value: unknown): string {
  const list = stringify([value], { ...textOptions, collectionStyle: "flow", flowCollectionPadding: false, doubleQuotedMinMultiLineLength: Infinity });
  return list.trim().slice(1, -1);
}

const textOptions = { version: "1.1", lineWidth: 0, singleQuote: false } as const;

/** blockText writes a value on lines, as texts of several lines are best read. */
function blockText(value: unknown): string {
  return stringify(value, textOptions).trimEnd();
}

function hasLines(value: unknown): boolean {
  if (typeof value === "string") return value.trimEnd().includes("\n");
  return typeof value === "object" && value !== null && Object.values(value).some(hasLines);
}

/** A change of a text: it replaces the part between from and to. */
export interface TextChange {
  from: number;
  to: number;
  insert: string;
}

/** changeBetween two texts, as short as it can be; undefined if they are equal. */
export function changeBetween(before: string, after: string): TextChange | undefined {
  if (before === after) return undefined;
  let from = 0;
  while (from < before.length && from < after.length && before[from] === after[from]) from++;
  let tail = 0;
  while (tail < before.length - from && tail < after.length - from && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return { from, to: before.length - tail, insert: after.slice(from, after.length - tail) };
}
