import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, visit, type Document, type Node, type Scalar } from "yaml";
import { isExact } from "../../../components/exact";
import { at, fieldsOf, isFields, wordOf, type Fields, type Path } from "./values";
import { kubernetesValue } from "./yaml11";

/** An object in a text. */
export interface Written {
  /** document, by its place in the text. */
  document: number;
  kind: string;
  apiVersion: string;
  name: string;
  object: Fields;
}

/** What a text holds. */
export interface Content {
  objects: Written[];
  /** main is the object that the page makes: a campaign, or else an experiment. */
  main: Written | undefined;
  /** Why the text, or a document of it, cannot be read as it is. */
  problem: { line: number; message: string } | undefined;
}

/** documentsOf a text. Kubernetes merges what << names. */
export function documentsOf(text: string, lineCounter?: LineCounter): Document.Parsed[] {
  const documents = parseAllDocuments(text, { merge: true, ...(lineCounter && { lineCounter }) });
  return Array.isArray(documents) ? documents : [];
}

/** read a text. */
export function read(text: string): Content {
  const lines = new LineCounter();
  const objects: Written[] = [];
  let problem: Content["problem"];
  for (const [document, parsed] of documentsOf(text, lines).entries()) {
    const object = plainOf(parsed);
    const mistake = mistakeIn(parsed, object);
    if (mistake) problem ??= { line: lines.linePos(mistake.offset).line, message: mistake.message };
    if (parsed.errors.length > 0 || !isFields(object)) continue;
    objects.push({ document, kind: wordOf(object.kind), apiVersion: wordOf(object.apiVersion), name: wordOf(at(object, ["metadata", "name"])), object });
  }
  return { objects, main: objects.find((o) => o.kind === "Campaign") ?? objects.find((o) => o.kind === "Experiment"), problem };
}

/** plainOf a document is its value; undefined if its aliases have none. */
export function plainOf(document: Document.Parsed): unknown {
  try {
    return document.toJS() as unknown;
  } catch {
    return undefined; // an alias without its anchor, too many aliases, or a merge of no object
  }
}

/** noYAML is the message of a text that cannot be parsed. */
export const noYAML = "This is no YAML.";

interface Mistake {
  offset: number;
  message: string;
}

function mistakeIn(document: Document.Parsed, plain: unknown): Mistake | undefined {
  const [error] = document.errors;
  if (error) return { offset: error.pos[0], message: noYAML };
  const found = plain === undefined ? (aliasIn(document) ?? mergeIn(document)) : (numberIn(document) ?? otherwiseIn(document));
  if (found || plain !== undefined) return found;
  return { offset: document.range[0], message: "The aliases of this document repeat too much." };
}

function aliasIn(document: Document.Parsed): Mistake | undefined {
  return findIn(document, (node) => (isAlias(node) && !node.resolve(document) ? `*${node.source} has no anchor &${node.source} before it.` : undefined));
}

/** mergeIn a document that merges what is no object. */
function mergeIn(document: Document.Parsed): Mistake | undefined {
  const isObject = (node: unknown): boolean => isMap(isAlias(node) ? node.resolve(document) : node);
  return findIn(document, (node) => {
    if (!isMap(node)) return undefined;
    const sources = node.items.filter(({ key }) => isScalar(key) && typeof key.value === "symbol").flatMap(({ value }) => (isSeq(value) ? value.items : [value]));
    return sources.every(isObject) ? undefined : "<< takes an anchor of an object, such as <<: *name.";
  });
}

/** otherwiseIn a document is a value that Kubernetes reads otherwise than the form shows it. */
function otherwiseIn(document: Document.Parsed): Mistake | undefined {
  return findIn(document, (node, isKey) => {
    const value = isKey ? undefined : kubernetesValue(node);
    if (value === undefined || !isScalar(node)) return undefined;
    return `Kubernetes reads ${node.source ?? ""} as ${value}: write ${value}, or "${node.source ?? ""}" with quotes for text.`;
  });
}

/** isRounded reports whether a node is a whole number that JavaScript has rounded. */
export function isRounded(node: unknown): node is Scalar & { source: string } {
  return isScalar(node) && node.source !== undefined && node.format !== "EXP" && !node.source.includes(".") && !isExact(node.value);
}

/** numberIn a document that was rounded: the cluster would get another one than the text has. */
function numberIn(document: Document.Parsed): Mistake | undefined {
  return findIn(document, (node) => {
    if (!isRounded(node)) return undefined;
    return `${node.source} is too large for a browser. Whole numbers are at most ${Number.MAX_SAFE_INTEGER}, above or below 0; vignette run takes larger ones.`;
  });
}

function findIn(document: Document.Parsed, messageOf: (node: Node, isKey: boolean) => string | undefined): Mistake | undefined {
  let found: Mistake | undefined;
  visit(document, {
    Node: (place, node) => {
      const message = messageOf(node, place === "key");
      if (message === undefined) return undefined;
      found = { offset: node.range?.[0] ?? 0, message };
      return visit.BREAK;
    },
  });
  return found;
}

/** specPath is where an object has the spec of an experiment. */
export function specPath(kind: string): Path {
  return kind === "Campaign" ? ["spec", "template", "spec"] : ["spec"];
}

/** specOf the experiment that an object is, or has as its template. */
export function specOf(written: Written): Fields {
  return fieldsOf(at(written.object, specPath(written.kind)));
}
