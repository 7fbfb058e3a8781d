import { LineCounter, parseAllDocuments } from "yaml";
import { at, fieldsOf, isFields, wordOf, type Fields, type Path } from "./values";

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
  /** Why the text, or its end, cannot be read as YAML. */
  problem: { line: number; message: string } | undefined;
}

/** read a text. */
export function read(text: string): Content {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines });
  const objects: Written[] = [];
  let problem: Content["problem"];
  for (const [document, parsed] of (Array.isArray(documents) ? documents : []).entries()) {
    const error = parsed.errors[0];
    if (error) {
      problem ??= { line: lines.linePos(error.pos[0]).line, message: "This is no YAML." };
      continue;
    }
    const object: unknown = parsed.toJS();
    if (!isFields(object)) continue;
    objects.push({ document, kind: wordOf(object.kind), apiVersion: wordOf(object.apiVersion), name: wordOf(at(object, ["metadata", "name"])), object });
  }
  return { objects, main: objects.find((o) => o.kind === "Campaign") ?? objects.find((o) => o.kind === "Experiment"), problem };
}

/** specPath is where an object has the spec of an experiment. */
export function specPath(kind: string): Path {
  return kind === "Campaign" ? ["spec", "template", "spec"] : ["spec"];
}

/** specOf the experiment that an object is, or has as its template. */
export function specOf(written: Written): Fields {
  return fieldsOf(at(written.object, specPath(written.kind)));
}
