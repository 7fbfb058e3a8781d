/** A step of a path: the name of a field, or the place of a list's element. */
export type Step = string | number;
export type Path = readonly Step[];

export type Fields = Record<string, unknown>;

/** fieldsOf an object; none of anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** listOf a list's elements; none of anything else. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** wordOf a text, number or truth value, as a field of a form shows it. */
export function wordOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint" ? String(value) : "";
}

/** wordsOf a list of words. */
export function wordsOf(value: unknown): string[] {
  return listOf(value).map(wordOf).filter((word) => word !== "");
}

/** at returns the value at a path; undefined if there is none. */
export function at(value: unknown, path: Path): unknown {
  let found = value;
  for (const step of path) {
    if (typeof step === "number") found = listOf(found)[step];
    else found = isFields(found) && Object.hasOwn(found, step) ? found[step] : undefined;
  }
  return found;
}

/** withValue returns a copy with another value at a path; undefined removes what is there. Missing parents are made. */
export function withValue(value: unknown, path: Path, next: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return next;
  if (typeof step === "number") return withElement(listOf(value), step, rest, next);
  const copy: Fields = { ...fieldsOf(value) };
  if (rest.length === 0 && next === undefined) {
    return Object.fromEntries(Object.entries(copy).filter(([name]) => name !== step));
  }
  const inner = withValue(Object.hasOwn(copy, step) ? copy[step] : undefined, rest, next);
  if (inner !== undefined) copy[step] = inner;
  return copy;
}

function withElement(list: unknown[], place: number, rest: Path, next: unknown): unknown[] {
  const copy = [...list];
  if (rest.length === 0 && next === undefined) copy.splice(place, 1);
  else copy[place] = withValue(copy[place], rest, next);
  return copy;
}

/** equal reports whether two values of JSON are the same; the order of fields does not count. */
export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => equal(each, b[i]));
  if (!isFields(a) || !isFields(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]));
}

/** contains reports whether a value has all that another one has; the API server adds defaults. */
export function contains(whole: unknown, part: unknown): boolean {
  if (Array.isArray(whole) && Array.isArray(part)) return whole.length === part.length && part.every((each, i) => contains(whole[i], each));
  if (!isFields(whole) || !isFields(part)) return equal(whole, part);
  return Object.keys(part).every((name) => contains(whole[name], part[name]));
}
