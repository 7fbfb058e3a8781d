import type { Reference, ReferenceFigure } from "../../archive/comparison";
import { bytesPerSecond, count, duration, nothing, percent, range } from "../../components/figures";
import type { BoxReference } from "../../components/plots/boxes";
import { leftMargin, shortened } from "../../components/plots/boxes";
import type { Inks } from "../../components/plots/inks";
import { figureColumn } from "../../components/plots/figureColumn";
import type { PlotLibrary, TextRow } from "../../components/plots/PlotFigure";
import type { Column } from "../../components/VirtualTable";
import { points, signed } from "./differences";

/** valueText writes a figure in the unit of its metric. */
export function valueText(metric: string, value: number | null): string {
  if (value === null) return nothing;
  if (metric.endsWith("Seconds")) return duration(value);
  if (metric.endsWith("Percent")) return percent(value);
  if (metric === "bytesPerSecond") return bytesPerSecond(value);
  return Number.isInteger(value) ? count(value) : value.toFixed(1);
}

function differenceText({ metric, difference }: ReferenceFigure): string {
  if (difference === null) return nothing;
  if (metric.endsWith("Seconds")) return signed(difference);
  if (metric.endsWith("Percent")) return points(difference);
  return `${difference > 0 ? "+" : ""}${Number(difference.toPrecision(3))}${metric === "bytesPerSecond" ? " B/s" : ""}`;
}

/** coveredText says whether the interval of one's own figure covers the reference. */
export function coveredText({ measured, covered, withinLateness }: ReferenceFigure): string {
  if (measured === null) return "not measured";
  const text = covered === null ? "no interval" : covered ? "covered" : "not covered";
  return withinLateness ? `${text} (within lateness)` : text;
}

/** referenceText writes a reference figure for the row of a run or condition. Only that which it stands beside is covered or not. */
export function referenceText(figure: ReferenceFigure, row: string): string {
  const text = `${figure.metric} ${valueText(figure.metric, figure.value)}`;
  return figure.label === row ? `${text}: ${coveredText(figure)}` : text;
}

/** referencesOf a group's run or condition, by its labels. Figures of networks are of no group, though one may have its name. */
export function referencesOf(figures: readonly ReferenceFigure[], group: string, labels: readonly string[]): ReferenceFigure[] {
  return figures.filter((figure) => figure.metric !== "bytesPerSecond" && figure.group === group && labels.includes(figure.label));
}

const delayNames: Record<string, string> = { minSeconds: "least", p25Seconds: "p25", medianSeconds: "median", meanSeconds: "mean", p75Seconds: "p75", p95Seconds: "p95", maxSeconds: "greatest" };

/** boxReferences are the figures that a box of delays can show. */
export function boxReferences(figures: readonly ReferenceFigure[]): BoxReference[] {
  return figures.flatMap(({ metric, value }) => {
    const what = delayNames[metric];
    return what === undefined ? [] : [{ what, seconds: value }];
  });
}

/** closeness says in a sentence how many figures the intervals cover. */
export function closeness({ figures, covered, notCovered, withoutInterval, notMeasured }: Reference): string {
  const rest = [withoutInterval > 0 ? `${withoutInterval} without an interval` : "", notMeasured > 0 ? `${notMeasured} not measured` : ""].filter((text) => text !== "");
  const sentence = `Of ${figures.length} reference ${figures.length === 1 ? "figure" : "figures"} the interval of one's own covers ${covered}, and not ${notCovered}`;
  return `${[sentence, ...rest].join("; ")}.`;
}

/** referenceRows are texts, and beside them the numbers by which they are sorted. */
export function referenceRows(figures: readonly ReferenceFigure[]): TextRow[] {
  return figures.map((figure) => ({
    label: figure.label,
    group: figure.group,
    metric: figure.metric,
    value: valueText(figure.metric, figure.value),
    measured: [valueText(figure.metric, figure.measured), range(figure.interval, (value) => valueText(figure.metric, value))].filter((text) => text !== "").join(" "),
    difference: differenceText(figure),
    relative: figure.differencePercent === null ? nothing : `${figure.differencePercent > 0 ? "+" : ""}${figure.differencePercent.toFixed(1)} %`,
    covered: coveredText(figure),
    source: figure.source,
    note: figure.note,
    valueNumber: figure.value,
    measuredNumber: figure.measured,
    differenceNumber: figure.difference,
    relativeNumber: figure.differencePercent,
  }));
}

export const referenceColumns: Column<TextRow>[] = [
  { id: "label", head: "Run or condition", value: (row) => row.label },
  { id: "group", head: "Of", value: (row) => row.group },
  { id: "metric", head: "Figure", value: (row) => row.metric },
  figureColumn("value", "Reference", true),
  figureColumn("measured", "Measured [95 %]", true),
  { id: "covered", head: "Interval", value: (row) => row.covered },
  figureColumn("difference", "Difference", true),
  figureColumn("relative", "In percent", true),
  { id: "source", head: "Source", value: (row) => row.source },
  { id: "note", head: "Note", value: (row) => row.note },
];

/** A measured figure and its interval in percent of the reference. */
interface Mark {
  name: string;
  percent: number;
  low: number | undefined;
  high: number | undefined;
  covered: boolean | null;
  title: string;
}

/** mostMarks are drawn at once. */
export const mostMarks = 60;

/** marksOf the figures whose difference has a share of the reference. */
export function marksOf(figures: readonly ReferenceFigure[]): Mark[] {
  return figures.flatMap((figure) => {
    const { label, group, metric, value, interval, differencePercent: share } = figure;
    if (share === null) return [];
    const of = (limit: number) => 100 * (limit / value - 1);
    const title = `${label}: ${group} ${metric}\nmeasured ${valueText(metric, figure.measured)}, reference ${valueText(metric, value)}: ${coveredText(figure)}`;
    return [{ name: `${metric} of ${group}: ${label}`, percent: share, low: interval ? of(interval.low) : undefined, high: interval ? of(interval.high) : undefined, covered: figure.covered, title }];
  });
}

export function drawMarks(plot: PlotLibrary, marks: readonly Mark[], width: number, inks: Inks): Element {
  const names = marks.map(({ name }) => name);
  const margin = leftMargin(names, width);
  const outside = marks.filter(({ covered }) => covered === false);
  const inside = marks.filter(({ covered }) => covered);
  const untold = marks.filter(({ covered }) => covered === null);
  const dot = { y: "name", x: "percent", r: 5 };
  return plot.plot({
    width,
    height: 70 + 26 * marks.length,
    marginLeft: margin,
    x: { label: "difference from the reference (%)", grid: true, nice: true, ...(width < 500 && { ticks: 4 }) },
    y: { label: null, domain: names, tickFormat: (name: string) => shortened(name, margin) },
    marks: [
      plot.ruleX([0], { strokeDasharray: "5 3" }),
      plot.ruleY(
        marks.filter(({ low }) => low !== undefined),
        { y: "name", x1: "low", x2: "high", strokeWidth: 2, stroke: "currentColor", marker: "tick" },
      ),
      plot.dot(inside, { ...dot, fill: inks.mark }),
      plot.dot(outside, { ...dot, symbol: "times", stroke: inks.bad, strokeWidth: 2.5 }),
      plot.dot(untold, { ...dot, stroke: "currentColor", strokeWidth: 1.5 }),
      plot.tip([...marks], plot.pointerY({ y: "name", x: "percent", title: "title" })),
    ],
  });
}
