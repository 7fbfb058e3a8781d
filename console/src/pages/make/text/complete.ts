import { isMap, isScalar, isSeq, type Document } from "yaml";
import { keyOf, nodeAt, pairsOf } from "./edits";
import { documentsOf, plainOf, specOf, type Written } from "./read";
import { schemaAt, type Schema, type Schemas } from "./schema";
import { at, fieldsOf, isFields, listOf, wordOf, type Path } from "./values";

/** What may stand at a place of a text. */
export interface Choice {
  label: string;
  /** detail in a few words, such as the type. */
  detail?: string;
  info?: string;
  /** apply is what is written; the label if it is absent. */
  apply?: string;
}

export interface Choices {
  /** from is where the word begins that the choice replaces. */
  from: number;
  choices: Choice[];
}

/** Names that the cluster has. */
export interface Names {
  waveforms: string[];
  scenarios: string[];
}

const placeholder = "vignette-is-typed-here";

/** choicesIn a text at an offset. It reads the text with a word of its own in the place of the one that is being typed. */
export function choicesIn(text: string, offset: number, schemas: Schemas, names: Names): Choices | undefined {
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  if (/(^|\s)#/.test(before)) return undefined;
  const word = /[\w./-]*$/.exec(before)?.[0] ?? "";
  const from = offset - word.length;
  const isValue = /:\s+$/.test(before.slice(0, before.length - word.length));
  const rest = /^[\w./-]*/.exec(text.slice(offset))?.[0] ?? "";
  const after = text.slice(offset + rest.length);
  const written = text.slice(0, from) + placeholder;
  const forms = isValue ? [written + after] : /^\s*:/.test(after) ? [written + after] : [`${written}: ${after}`, written + after];
  for (const form of forms) {
    const found = placeIn(form);
    if (!found) continue;
    const choices = choicesOf(schemas, found, names, !/^\s*:/.test(after));
    if (choices.length > 0) return { from, choices };
  }
  return undefined;
}

interface Place {
  kind: string;
  object: unknown;
  /** path of the field whose value is typed; of the object that gets a field if key is set. */
  path: Path;
  key: boolean;
}

function placeIn(text: string): Place | undefined {
  for (const document of documentsOf(text)) {
    const found = find(document);
    if (found) return found;
  }
  return undefined;
}

function find(document: Document.Parsed): Place | undefined {
  const kind = nodeAt(document.contents, ["kind"]);
  const place = { kind: isScalar(kind) ? wordOf(kind.value) : "", object: plainOf(document) };
  const search = (node: unknown, path: Path): Place | undefined => {
    if (isScalar(node)) return node.value === placeholder ? { ...place, path, key: false } : undefined;
    if (isMap(node)) {
      for (const pair of pairsOf(node)) {
        if (keyOf(pair) === placeholder) return { ...place, path, key: true };
        const inner = search(pair.value, [...path, keyOf(pair)]);
        if (inner) return inner;
      }
    }
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        const inner = search(item, [...path, index]);
        if (inner) return inner;
      }
    }
    return undefined;
  };
  return search(document.contents, []);
}

function choicesOf(schemas: Schemas, place: Place, names: Names, colon: boolean): Choice[] {
  const schema = schemaAt(schemas, place.kind, place.path);
  if (place.key) return keysOf(schema, at(place.object, place.path), colon);
  const words = (schema?.enum ?? (schema?.type === "boolean" ? [true, false] : [])).map(String);
  const references = referencesAt(place, names);
  return [...words, ...references].map((label) => ({ label, ...(schema?.description !== undefined && { info: schema.description }) }));
}

function keysOf(schema: Schema | undefined, present: unknown, colon: boolean): Choice[] {
  const used = Object.keys(fieldsOf(present));
  return Object.entries(schema?.properties ?? {})
    .filter(([name]) => !used.includes(name))
    .map(([name, field]) => ({
      label: name,
      detail: typeOf(field) + (schema?.required?.includes(name) ? ", required" : ""),
      ...(field.description !== undefined && { info: field.description }),
      ...(colon && { apply: `${name}: ` }),
    }));
}

/** typeOf a field in a word or two. */
export function typeOf(schema: Schema): string {
  if (schema.type === "array") return `list of ${schema.items?.type ?? "values"}s`;
  if (schema.type === "object") return "object";
  return schema.type === "integer" ? "whole number" : schema.type === "boolean" ? "true or false" : schema.type === "string" ? "text" : "text or number";
}

/** referencesAt a place are the names of what the field may refer to. */
function referencesAt(place: Place, names: Names): string[] {
  const spec = fieldsOf(at(place.object, place.kind === "Campaign" ? ["spec", "template", "spec"] : ["spec"]));
  const last = place.path.filter((step) => typeof step === "string").at(-1);
  const ofNode = place.path.includes("nodes");
  if (last === "waveform") return names.waveforms;
  if (last === "ref") return names.scenarios;
  if ((last === "apps" && ofNode) || last === "to" || last === "start" || last === "stop" || last === "via" || last === "peer") return namesOf(spec.apps);
  if ((last === "networks" && ofNode) || last === "network" || last === "captures") return namesOf(spec.networks);
  return [];
}

export function namesOf(list: unknown): string[] {
  return listOf(list).map((each) => wordOf(fieldsOf(each).name)).filter((name) => name !== "" && name !== placeholder);
}

/** explain the field at an offset of a text: its name, its type and what its schema says of it. */
export function explain(text: string, offset: number, schemas: Schemas): { from: number; to: number; name: string; schema: Schema } | undefined {
  for (const document of documentsOf(text)) {
    const kind = nodeAt(document.contents, ["kind"]);
    const found = keyAt(document.contents, offset, []);
    const schema = found && isScalar(kind) ? schemaAt(schemas, wordOf(kind.value), found.path) : undefined;
    if (found && schema) return { from: found.from, to: found.to, name: String(found.path.at(-1)), schema };
  }
  return undefined;
}

function keyAt(node: unknown, offset: number, path: Path): { from: number; to: number; path: Path } | undefined {
  if (isMap(node)) {
    for (const pair of pairsOf(node)) {
      const range = pair.key.range;
      if (range && offset >= range[0] && offset <= range[1]) return { from: range[0], to: range[1], path: [...path, keyOf(pair)] };
      const inner = keyAt(pair.value, offset, [...path, keyOf(pair)]);
      if (inner) return inner;
    }
  }
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      const inner = keyAt(item, offset, [...path, index]);
      if (inner) return inner;
    }
  }
  return undefined;
}

/** pathsOf the fields of an experiment that a campaign may vary: those that it has, and beside them what their schemas know. */
export function pathsOf(written: Written, schemas: Schemas): Choice[] {
  const found: Choice[] = [];
  const walk = (schema: Schema | undefined, value: unknown, path: string): void => {
    for (const [name, field] of Object.entries(schema?.properties ?? {})) {
      const inside = path === "" ? name : `${path}.${name}`;
      const inner = isFields(value) ? value[name] : undefined;
      if (field.type === "object" && field.properties) {
        found.push({ label: inside, detail: "object" });
        if (isFields(inner)) walk(field, inner, inside);
      } else if (field.type === "array" && field.items?.type === "object") {
        for (const [index, element] of listOf(inner).entries()) walk(field.items, element, `${inside}[${wordOf(fieldsOf(element).name) || index}]`);
      } else found.push({ label: inside, detail: typeOf(field), ...(field.description !== undefined && { info: field.description }) });
    }
  };
  walk(schemaAt(schemas, "Experiment", ["spec"]), specOf(written), "");
  return found;
}
