import { count, duration, percent } from "../../components/figures";
import { ofLastSpec } from "./points";
import type { Measured, Run } from "./round";

/** Measure is what the heat map and the tables can show of runs. */
export interface Measure {
  id: string;
  label: string;
  /** of several runs together: a share of all of them, or the mean of their values. */
  of: (measured: readonly Measured[]) => number | undefined;
  write: (value: number | undefined) => string;
  /** how several runs are put together, in words. */
  together: string;
  /** needsResults means that the campaign's status does not have it. */
  needsResults: boolean;
  /** whole is the range of a share. */
  whole?: readonly [number, number];
}

function mean(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value): value is number => value !== undefined && !Number.isNaN(value));
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0) / known.length;
}

function share(part: number, of: number): number | undefined {
  return of === 0 ? undefined : (100 * part) / of;
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

function time(id: string, label: string, value: (measured: Measured) => number | undefined, needsResults = true): Measure {
  return { id, label, of: (all) => mean(all.map(value)), write: duration, together: "the mean of the runs' values", needsResults };
}

function counted(id: string, label: string, value: (measured: Measured) => number): Measure {
  return { id, label, of: (all) => mean(all.map(value)), write: (n) => (n === undefined ? "–" : Number.isInteger(n) ? count(n) : n.toFixed(1)), together: "the mean of the runs' numbers", needsResults: false };
}

export const measures: readonly Measure[] = [
  {
    id: "delivered",
    label: "Delivered",
    of: (all) => share(sum(all.map(({ received }) => received)), sum(all.map(({ offered }) => offered))),
    write: percent,
    together: "the share of all offered deliveries of the runs",
    needsResults: false,
    whole: [0, 100],
  },
  time("median", "Median delay", ({ medianSeconds }) => medianSeconds, false),
  time("mean", "Mean delay", ({ more }) => more?.meanSeconds),
  time("p95", "95th percentile of the delay", ({ more }) => more?.p95Seconds),
  time("max", "Greatest delay", ({ more }) => more?.maxSeconds),
  {
    id: "receipts",
    label: "Requests with a receipt",
    of: (all) => share(sum(all.map(({ more }) => more?.receipts ?? 0)), sum(all.map(({ more }) => more?.requests ?? 0))),
    write: percent,
    together: "the share of all requests of the runs",
    needsResults: true,
    whole: [0, 100],
  },
  time("response", "Mean response time", ({ more }) => more?.responseSeconds),
  {
    id: "keptUp",
    label: "Runs that kept up",
    of: (all) => {
      const judged = all.filter(({ keptUp }) => keptUp !== undefined);
      return share(judged.filter(({ keptUp }) => keptUp).length, judged.length);
    },
    write: percent,
    together: "the share of the runs that were judged",
    needsResults: false,
    whole: [0, 100],
  },
  counted("warnings", "Warnings", ({ warnings }) => warnings),
  counted("gaps", "Gaps", ({ gaps }) => gaps),
];

export function measureOf(id: string | undefined): Measure {
  return measures.find((measure) => measure.id === id) ?? (measures[0] as Measure);
}

/** valueOf a measure for runs together, of each point those of its last spec; undefined if none has it. */
export function valueOf(measure: Measure, runs: readonly Run[]): number | undefined {
  const measured = ofLastSpec(runs).flatMap((run) => run.measured ?? []);
  return measured.length === 0 ? undefined : measure.of(measured);
}
