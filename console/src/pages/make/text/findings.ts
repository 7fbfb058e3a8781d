import { equal, fieldsOf, isFields, listOf, wordOf, type Path, type Step } from "./values";

/** Finding of `vignette validate`. */
export interface Finding {
  /** line from 1; absent if there is none. */
  line?: number;
  /** path of the field, such as spec.nodes[2].count. */
  path?: string;
  message: string;
  warning?: boolean;
}

/** stepsOf a path as Go writes it: an element is named by its place, its name or its time. */
export function stepsOf(path: string, object: unknown): Path {
  const steps: Step[] = [];
  let found = object;
  for (const part of path.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)) {
    const inner = part[1];
    const step: Step = inner === undefined ? part[0] : elementOf(inner, found);
    steps.push(step);
    found = typeof step === "number" ? listOf(found)[step] : fieldsOf(found)[step];
  }
  return steps;
}

/** innerFirst orders findings so that one of a field comes before those of fields around it, which may follow from it. */
export function innerFirst(findings: readonly Finding[]): Finding[] {
  const ordered = new Set<Finding>();
  const add = (finding: Finding) => {
    for (const other of findings) if (isWithin(other, finding) && !ordered.has(other)) add(other);
    ordered.add(finding);
  };
  findings.forEach(add);
  return [...ordered];
}

function isWithin({ path: inner = "" }: Finding, { path: outer = "" }: Finding): boolean {
  return outer !== "" && inner.startsWith(outer) && /^[.[]/.test(inner.slice(outer.length));
}

function elementOf(name: string, list: unknown): Step {
  if (!Array.isArray(list)) return name;
  const place = list.findIndex((each) => isFields(each) && (wordOf(each.name) === name || wordOf(each.at) === name));
  if (place >= 0) return place;
  return /^\d+$/.test(name) ? Number(name) : name;
}

/** findingsAt a field: those of the field itself, and with within also those of fields inside it. */
export function findingsAt(findings: readonly Finding[], object: unknown, path: Path, within = false): Finding[] {
  return findings.filter((finding) => {
    if (!finding.path) return false;
    const steps = stepsOf(finding.path, object);
    return equal(within ? steps.slice(0, path.length) : steps, path);
  });
}

/** wordsAt a field are the messages of its errors. */
export function wordsAt(findings: readonly Finding[], object: unknown, path: Path, within = false): string | undefined {
  const messages = findingsAt(findings, object, path, within).filter((f) => !f.warning).map((f) => f.message);
  return messages.length > 0 ? messages.join("; ") : undefined;
}
