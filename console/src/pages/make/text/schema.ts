import type { Path } from "./values";

/** Schema is what an editor shows of a field's schema; src/types/schemas.gen.json has those of the kinds. */
export interface Schema {
  description?: string;
  type?: string;
  enum?: unknown[];
  default?: unknown;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  /** The kind whose spec has this schema. */
  $ref?: string;
}

export type Schemas = Record<string, Schema>;

/** loadSchemas when they are first needed. */
export async function loadSchemas(): Promise<Schemas> {
  const loaded = (await import("../../../types/schemas.gen.json")).default as unknown;
  return loaded as Schemas;
}

/** schemaAt a path of an object of a kind; undefined if the kind has no such field. */
export function schemaAt(schemas: Schemas, kind: string, path: Path): Schema | undefined {
  let schema = schemas[kind];
  for (const step of path) {
    schema = typeof step === "number" ? schema?.items : (schema?.properties?.[step] ?? schema?.additionalProperties);
    schema = resolved(schemas, schema);
  }
  return schema;
}

function resolved(schemas: Schemas, schema: Schema | undefined): Schema | undefined {
  return schema?.$ref === undefined ? schema : schemas[schema.$ref]?.properties?.spec;
}

/** choicesAt a path are the words that the field may have; none if it takes others. */
export function choicesAt(schemas: Schemas | undefined, kind: string, path: Path): string[] {
  const schema = schemas && schemaAt(schemas, kind, path);
  return (schema?.enum ?? []).map(String);
}
