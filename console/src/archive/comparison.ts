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
  /** withinLateness is absent in differences of requests. */
  withinLateness?: string[];
}

export interface ComparedGroup {
  name: string;
  runs: (Compared & { uid: string })[];
  conditions: (Compared & { runs: number })[];
  differences: Difference[] | null;
  /** requestDifferences are of response times, and of requests without a receipt; absent without requests, and in comparisons of older servers. */
  requestDifferences?: Difference[];
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

export interface ComparedNetwork {
  name: string;
  runs: { label: string; bytesPerSecond: number | null }[];
  /** conditions have the means of their runs; absent in comparisons of older servers. */
  conditions?: { label: string; bytesPerSecond: number | null; confidence: { bytesPerSecond: Interval | null } }[];
}

export interface Remark {
  what: string;
  reason: string;
}

/** A reference figure beside that of one's own. */
export interface ReferenceFigure {
  source: string;
  label: string;
  runs: number;
  group: string;
  metric: string;
  value: number;
  measured: number | null;
  interval: Interval | null;
  difference: number | null;
  differencePercent: number | null;
  covered: boolean | null;
  withinLateness: boolean;
  note: string;
}

export interface Reference {
  covered: number;
  notCovered: number;
  withoutInterval: number;
  notMeasured: number;
  figures: ReferenceFigure[];
}

/** A file of reference figures that somebody chose. */
export interface ReferenceFile {
  name: string;
  text: string;
}

/** mostReferenceBytes of a file, as in internal/reference. */
export const mostReferenceBytes = 32 * 1024;

export interface Comparison {
  level: number;
  by: string | null;
  fields: { field: string; values: string[] }[] | null;
  runs: ComparedRun[];
  conditions: { label: string; runs: string[]; unit: "run" | "block" }[];
  groups: ComparedGroup[];
  axes: { axis: string; groups: { name: string; conditions: Compared[]; differences: Difference[] | null; requestDifferences?: Difference[] }[] }[] | null;
  /** publishers have their figures in each run, in the order of runs; null where a run does not have the publisher. */
  publishers: { name: string; node: string; runs: { label: string; messages: Messages | null; delaySeconds: Quantiles | null }[] }[] | null;
  networks: ComparedNetwork[] | null;
  /** messageSizes on the wire; null without captures of messages, and absent in comparisons of older servers. */
  messageSizes?: { protocol: string; runs: { label: string; medianBytes: number | null }[] }[] | null;
  /** picture by group of the nodes that report their positions; null without any, and absent in comparisons of older servers. */
  picture?: { name: string; runs: { label: string; errorMedianMetres: number | null; ageMedianSeconds: number | null }[] }[] | null;
  reference?: Reference;
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

/** What is asked of a comparison. */
export interface Asked {
  runs: readonly RunName[];
  by: string | undefined;
  reference: ReferenceFile | undefined;
}

/** comparisonPath of runs: in their namespace, or in all for whoever may read all. */
export function comparisonPath({ runs, by, reference }: Asked, format: "json" | "csv" | "html" | "latex"): string {
  const parameters = new URLSearchParams({ format });
  if (by) parameters.set("by", by);
  if (reference) {
    parameters.set("reference", reference.text);
    parameters.set("referenceName", reference.name);
  }
  for (const { uid } of runs) parameters.append("run", uid);
  const namespaces = new Set(runs.map(({ namespace }) => namespace));
  const [only] = namespaces;
  const path = namespaces.size === 1 && only !== undefined ? archivePath(only, "/compare") : `${everywhere}/compare`;
  return `${path}?${parameters.toString()}`;
}

export function comparisonQuery(asked: Asked) {
  return queryOptions({
    queryKey: ["compare", asked.runs, asked.by ?? null, asked.reference ?? null],
    queryFn: ({ signal }) => askJSON<Comparison>(comparisonPath(asked, "json"), { signal }),
    enabled: asked.runs.length >= 2,
    staleTime: 60_000,
    retry: false,
  });
}
