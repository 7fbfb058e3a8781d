import { queryOptions } from "@tanstack/react-query";
import { askJSON } from "../kubernetes/client";
import { archivePath } from "./client";
import { everywhere } from "./runs";
import type { Interval, Messages, Quantiles, Requests } from "./types";

// GET /v1/compare, as in docs/reference/comparison.md. All figures are the server's.

export interface Estimate {
  estimate: number;
  low: number | null;
  high: number | null;
}

export interface TestResult {
  p: number | null;
  pHolm: number | null;
  tooFew?: boolean;
}

export interface Compared {
  label: string;
  messages: Messages;
  delaySeconds: Quantiles | null;
  confidence?: { deliveredPercent?: Interval | null; medianSeconds?: Interval | null; meanSeconds?: Interval | null } | null;
  requests?: Requests | null;
}

export interface Difference {
  from: string;
  to: string;
  delay: { shiftSeconds: Estimate | null; cliffsDelta: Estimate | null; brunnerMunzel: TestResult | null } | null;
  loss: { percentagePoints: Estimate | null; welch: TestResult | null } | null;
  withinLateness: string[];
}

export interface ComparedGroup {
  name: string;
  runs: (Compared & { uid: string })[];
  conditions: (Compared & { runs: number })[];
  differences: Difference[] | null;
}

export interface ComparedRun {
  label: string;
  condition: string;
  experiment: string;
  namespace: string;
  uid: string;
  startTime: string | null;
  durationSeconds: number;
  seed: number | null;
  keptUp: boolean | null;
  complete: boolean;
  warnings: number;
}

export interface Remark {
  what: string;
  reason: string;
}

export interface Comparison {
  level: number;
  by: string | null;
  fields: { field: string; values: string[] }[] | null;
  runs: ComparedRun[];
  conditions: { label: string; runs: string[]; unit: "run" | "block" }[];
  groups: ComparedGroup[];
  axes: { axis: string; groups: { name: string; conditions: Compared[]; differences: Difference[] | null }[] }[] | null;
  networks: { name: string; runs: { label: string; bytesPerSecond: number | null }[] }[] | null;
  warnings: Remark[] | null;
  notes: Remark[] | null;
  gaps: Remark[] | null;
}

/** A run as an address names it: NAMESPACE/UID. */
export interface RunName {
  namespace: string;
  uid: string;
}

/** runNamesOf the texts that name one; others are left out. */
export function runNamesOf(texts: readonly string[]): RunName[] {
  return texts.flatMap((text) => {
    const [namespace, uid, ...more] = text.split("/");
    return namespace && uid && more.length === 0 ? [{ namespace, uid }] : [];
  });
}

/** mostCompared runs at once, as in internal/runapi. */
export const mostCompared = 1000;

/** comparisonPath of runs: in their namespace, or in all for whoever may read all. */
export function comparisonPath(runs: readonly RunName[], by: string | undefined, format: "json" | "csv" | "html" | "latex"): string {
  const parameters = new URLSearchParams({ format });
  if (by) parameters.set("by", by);
  for (const { uid } of runs) parameters.append("run", uid);
  const namespaces = new Set(runs.map(({ namespace }) => namespace));
  const [only] = namespaces;
  const path = namespaces.size === 1 && only !== undefined ? archivePath(only, "/compare") : `${everywhere}/compare`;
  return `${path}?${parameters.toString()}`;
}

export function comparisonQuery(runs: readonly RunName[], by: string | undefined) {
  return queryOptions({
    queryKey: ["compare", runs, by ?? null],
    queryFn: ({ signal }) => askJSON<Comparison>(comparisonPath(runs, by, "json"), { signal }),
    enabled: runs.length >= 2,
    staleTime: 60_000,
    retry: false,
  });
}
