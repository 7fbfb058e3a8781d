import type { Quantiles } from "../../archive/types";
import { duration, tickDuration } from "../figures";
import type { Column } from "../VirtualTable";
import { greatest } from "./greatest";
import type { Inks } from "./inks";
import type { PlotLibrary, TextRow } from "./PlotFigure";

/** A box of a box plot, of exact quantiles. */
export interface Box extends Quantiles {
  name: string;
  /** references stand beside the box: figures that were published, or measured earlier. */
  references?: readonly BoxReference[];
}

/** A reference figure of a box, such as the median. */
export interface BoxReference {
  what: string;
  seconds: number;
}

/** boxesOf the entries that have a delay. */
export function boxesOf(entries: readonly { name: string; quantiles: Quantiles | null | undefined; references?: readonly BoxReference[] }[]): Box[] {
  return entries.flatMap(({ name, quantiles, references }) => (quantiles ? [{ name, ...quantiles, ...(references?.length && { references }) }] : []));
}

/** mostBoxes are drawn at once. */
export const mostBoxes = 60;

/** chosenBoxes are those with the greatest medians, in the given order, if there are more than can be drawn. */
export function chosenBoxes(boxes: readonly Box[]): Box[] {
  return greatest(boxes, mostBoxes, ({ median }) => median);
}

/** needsLogarithm reports whether values lie so far apart that a linear axis would hide most of them. */
export function needsLogarithm(boxes: readonly Box[]): boolean {
  const medians = boxes.map(({ median }) => median);
  return boxes.every((box) => leastOf(box) > 0) && Math.max(...boxes.map(greatestOf)) > 30 * Math.min(...medians);
}

function leastOf({ min, references = [] }: Box): number {
  return Math.min(min, ...references.map(({ seconds }) => seconds));
}

function greatestOf({ max, references = [] }: Box): number {
  return Math.max(max, ...references.map(({ seconds }) => seconds));
}

/** timeAxis of boxes. On a logarithmic one every mark has the unit that suits it. */
function timeAxis(boxes: readonly Box[]): { type: "log" | "linear"; tickFormat: (seconds: number) => string } {
  if (needsLogarithm(boxes)) return { type: "log", tickFormat: (seconds) => duration(seconds).replace(/\.0+ /, " ") };
  return { type: "linear", tickFormat: tickDuration(Math.min(...boxes.map(leastOf)), Math.max(...boxes.map(greatestOf))) };
}

const labelWidth = 7;

/** leftMargin that the longest of the names needs, at most a third of the width. */
export function leftMargin(names: readonly string[], width: number): number {
  const longest = Math.max(0, ...names.map(({ length }) => length));
  return Math.min(longest * labelWidth + 16, Math.floor(width / 3));
}

/** shortened to what fits into a margin. */
export function shortened(name: string, margin: number): string {
  const room = Math.floor((margin - 16) / labelWidth);
  return name.length <= room ? name : `${name.slice(0, Math.max(1, room - 1))}…`;
}

/** drawBoxes draws the box from p25 to p75, the line at the median, whiskers to the least and the greatest, a dot at the mean, diamonds at references. */
export function drawBoxes(plot: PlotLibrary, boxes: readonly Box[], width: number, inks: Inks, what: string): Element {
  const names = boxes.map(({ name }) => name);
  const margin = leftMargin(names, width);
  const data = [...boxes];
  const references = boxes.flatMap(({ name, references = [] }) => references.map((reference) => ({ name, ...reference })));
  return plot.plot({
    width,
    height: 60 + 26 * boxes.length,
    marginLeft: margin,
    x: { label: what, ...timeAxis(boxes), grid: true, ...(width < 500 && { ticks: 4 }) },
    y: { label: null, domain: names, tickFormat: (name: string) => shortened(name, margin) },
    marks: [
      plot.ruleY(data, { y: "name", x1: "min", x2: "max" }),
      plot.tickX(data, { y: "name", x: "min", inset: 4 }),
      plot.tickX(data, { y: "name", x: "max", inset: 4 }),
      plot.barX(data, { y: "name", x1: "p25", x2: "p75", fill: inks.box, stroke: "currentColor", inset: 2 }),
      plot.tickX(data, { y: "name", x: "median", strokeWidth: 3 }),
      plot.dot(
        data.filter(({ mean }) => mean !== undefined),
        { y: "name", x: "mean", r: 3, fill: "currentColor" },
      ),
      plot.dot(references, { y: "name", x: "seconds", r: 6, symbol: "diamond", fill: inks.part, stroke: "currentColor" }),
      plot.tip(data, plot.pointerY({ y: "name", x: "median", title: titleOf })),
    ],
  });
}

function titleOf(box: Box): string {
  const references = (box.references ?? []).map(({ what, seconds }) => `\nreference ${what} ${duration(seconds)}`).join("");
  return `${box.name}\nmedian ${duration(box.median)}, mean ${duration(box.mean)}\nhalf of them from ${duration(box.p25)} to ${duration(box.p75)}\nall from ${duration(box.min)} to ${duration(box.max)}${references}`;
}

export const diamondCaption = " Diamonds: reference figures.";

export const boxCaption = "Box: the middle half. Line: median. Dot: mean. Whiskers: least and greatest. The quantiles are exact.";

const quantile = (id: keyof Quantiles, head: string): Column<TextRow> => ({ id, head, numeric: true, value: (row) => row[id], show: (row) => duration(row[id] as number | undefined) });

export const boxColumns: Column<TextRow>[] = [
  { id: "name", head: "Name", value: (row) => row.name },
  quantile("min", "Least"),
  quantile("p25", "p25"),
  quantile("median", "Median"),
  quantile("mean", "Mean"),
  quantile("p75", "p75"),
  quantile("p95", "p95"),
  quantile("max", "Greatest"),
];
