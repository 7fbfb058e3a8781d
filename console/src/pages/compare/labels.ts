import type { Comparison } from "../../archive/comparison";

/** labelsOf runs, in their order: what differs. Runs with the same label get their experiment's name, or the beginning of their UID, too. */
export function labelsOf({ runs }: Comparison): string[] {
  const times = new Map<string, number>();
  for (const { label } of runs) times.set(label, (times.get(label) ?? 0) + 1);
  const named = runs.map(({ label, experiment }) => (times.get(label) === 1 ? label : `${label} (${experiment})`));
  return named.map((name, i) => (named.indexOf(name) === named.lastIndexOf(name) ? name : `${name} ${runs[i]?.uid.slice(0, 8) ?? ""}`));
}

/** Shown are the rows of tables: each run, or repeats together. */
export type Shown = "runs" | "conditions";

export function hasRepeats({ conditions, runs }: Comparison): boolean {
  return conditions.length < runs.length;
}

/** shownOf a comparison are its conditions, unless runs are chosen or each is a condition. */
export function shownOf(comparison: Comparison, chosen: string | undefined): Shown {
  return chosen === "runs" || !hasRepeats(comparison) ? "runs" : "conditions";
}
