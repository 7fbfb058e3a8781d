import { queryOptions } from "@tanstack/react-query";
import { piecesOf, readTable, Reservoir, type Cells, type Sample } from "../../archive/csv";
import { filePath } from "../../archive/runs";
import type { ManifestFile, PictureGroup } from "../../archive/types";
import { count, duration, metres, percent } from "../../components/figures";
import type { PlotLibrary, TextRow } from "../../components/plots/PlotFigure";
import { afterT0 } from "../../components/time";
import type { Column } from "../../components/VirtualTable";
import { palette } from "../../theme/palette";

const figures = { median: "median", mean: "mean", p95: "95 %", max: "greatest" } as const;
type Figure = keyof typeof figures;

const error = (figure: Figure): Column<PictureGroup> => ({ id: `error-${figure}`, head: `Error, ${figures[figure]}`, numeric: true, value: ({ errorMetres }) => errorMetres?.[figure], show: ({ errorMetres }) => metres(errorMetres?.[figure]) });
const age = (figure: Figure): Column<PictureGroup> => ({ id: `age-${figure}`, head: `Age, ${figures[figure]}`, numeric: true, value: ({ ageSeconds }) => ageSeconds?.[figure], show: ({ ageSeconds }) => duration(ageSeconds?.[figure]) });
const each = Object.keys(figures) as Figure[];

export const groupColumns: Column<PictureGroup>[] = [
  { id: "name", head: "Group of the node", value: ({ name }) => name },
  { id: "pairs", head: "Pairs", numeric: true, value: ({ pairs }) => pairs, show: ({ pairs }) => count(pairs) },
  { id: "known", head: "Known", numeric: true, value: ({ knownPercent }) => knownPercent, show: ({ knownPercent }) => percent(knownPercent) },
  ...each.map(error),
  ...each.map(age),
];

/** ErrorMoment has the error over all pairs with a position, in metres, at a second after T0. */
export interface ErrorMoment {
  at: number;
  median: number;
  p95: number;
}

// As many intervals as in the report.
const intervals = 240;

/** Curve of the error over time: averages over so many seconds. */
export interface Curve {
  seconds: number;
  moments: ErrorMoment[];
}

/** curveOf moments in order of time, averaged so that the curve has not too many. */
export function curveOf(moments: readonly ErrorMoment[]): Curve {
  const seconds = Math.max(1, Math.ceil(((moments.at(-1)?.at ?? 0) + 1) / intervals));
  const parts = new Map<number, ErrorMoment[]>();
  for (const moment of moments) {
    const at = Math.floor(moment.at / seconds) * seconds;
    const part = parts.get(at);
    if (part) part.push(moment);
    else parts.set(at, [moment]);
  }
  const mean = (some: readonly ErrorMoment[], figure: "median" | "p95") => some.reduce((sum, moment) => sum + moment[figure], 0) / some.length;
  return { seconds, moments: [...parts].map(([at, some]) => ({ at, median: mean(some, "median"), p95: mean(some, "p95") })) };
}

/** momentOf a row of results/picture-times.csv; undefined where no error is known. */
function momentOf(cells: Cells): ErrorMoment | undefined {
  const median = numberIn(cells, "errorMedianMetres");
  return median === undefined ? undefined : { at: Number(cells("second")), median, p95: Number(cells("errorP95Metres")) };
}

/** curveQuery reads the error over time from results/picture-times.csv. */
export function curveQuery(namespace: string, uid: string, file: ManifestFile | undefined) {
  return queryOptions({
    queryKey: ["run", namespace, uid, "picture over time"],
    enabled: file !== undefined,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Curve> => {
      const { path, bytes } = file as ManifestFile;
      const moments: ErrorMoment[] = [];
      const add = (cells: Cells) => {
        const moment = momentOf(cells);
        if (moment) moments.push(moment);
      };
      await readTable(filePath(namespace, uid, path), piecesOf(bytes), add, signal);
      return curveOf(moments);
    },
  });
}

/** curveLegend is the same in light and dark. */
export const curveLegend = [
  { label: "median", colour: palette.blue },
  { label: "95 % (dashed)", colour: palette.orange },
];

export function drawCurve(plot: PlotLibrary, moments: ErrorMoment[], width: number): Element {
  const title = ({ at, median, p95 }: ErrorMoment) => `${afterT0(at)}\nmedian ${metres(median)}\n95 % ${metres(p95)}`;
  const isZero = moments.every(({ median, p95 }) => median === 0 && p95 === 0);
  return plot.plot({
    width,
    height: 280,
    marginLeft: 64,
    x: { label: "after T0", tickFormat: (seconds: number) => afterT0(seconds).slice(3), ...(width < 500 && { ticks: 4 }) },
    y: { label: "error (m)", grid: true, zero: true, nice: true, ...(isZero && { domain: [0, 1] }) },
    marks: [
      plot.ruleY([0]),
      plot.line(moments, { x: "at", y: "median", stroke: palette.blue, strokeWidth: 2 }),
      plot.line(moments, { x: "at", y: "p95", stroke: palette.orange, strokeWidth: 2, strokeDasharray: "5 3" }),
      plot.tip(moments, plot.pointerX({ x: "at", y: "p95", title })),
    ],
  });
}

export const curveColumns: Column<TextRow>[] = [
  { id: "at", head: "Time", numeric: true, value: ({ at }) => at, show: ({ at }) => afterT0(at as number) },
  { id: "median", head: "Error, median", numeric: true, value: ({ median }) => median, show: ({ median }) => metres(median as number) },
  { id: "p95", head: "Error, 95 %", numeric: true, value: ({ p95 }) => p95, show: ({ p95 }) => metres(p95 as number) },
];

/** PicturePair is a subscriber and a node that reports its position. */
export interface PicturePair {
  subscriber: string;
  node: string;
  knownPercent: number;
  errorMedian: number | undefined;
  errorMean: number | undefined;
  errorP95: number | undefined;
  ageMedian: number | undefined;
  ageP95: number | undefined;
}

// As many pairs as in the report.
const worst = 50;

function pairOf(cells: Cells): PicturePair {
  return {
    subscriber: cells("subscriber"),
    node: cells("node"),
    knownPercent: Number(cells("knownPercent")),
    errorMedian: numberIn(cells, "errorMedianMetres"),
    errorMean: numberIn(cells, "errorMeanMetres"),
    errorP95: numberIn(cells, "errorP95Metres"),
    ageMedian: numberIn(cells, "ageMedianSeconds"),
    ageP95: numberIn(cells, "ageP95Seconds"),
  };
}

function numberIn(cells: Cells, column: string): number | undefined {
  const text = cells(column);
  return text === "" ? undefined : Number(text);
}

/** pairsQuery reads the pairs with the greatest mean error from results/picture.csv. Those without a known error come last. */
export function pairsQuery(namespace: string, uid: string, file: ManifestFile | undefined) {
  return queryOptions({
    queryKey: ["run", namespace, uid, "pairs of the picture"],
    enabled: file !== undefined,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Sample<PicturePair>> => {
      const { path, bytes } = file as ManifestFile;
      const parts = piecesOf(bytes);
      const greatest = new Reservoir<PicturePair>(0, worst, ({ errorMean }) => errorMean ?? -1);
      const add = (cells: Cells) => {
        greatest.add(pairOf(cells));
      };
      await readTable(filePath(namespace, uid, path), parts, add, signal);
      return { rows: greatest.rows(), read: greatest.read, whole: parts.length === 1 };
    },
  });
}

/** pairWords says which pairs are shown. */
export function pairWords({ rows, read, whole }: Sample<unknown>, path: string): string {
  if (!whole) return `The ${rows.length} pairs with the greatest mean error in parts all over ${path}, which is too large to be read here.`;
  return rows.length === read ? `All ${read} pairs, the greatest mean error first.` : `The ${rows.length} of ${read} pairs with the greatest mean error.`;
}

type PairFigure = "errorMedian" | "errorMean" | "errorP95" | "ageMedian" | "ageP95";
const ofPair = (id: PairFigure, head: string, write: (value: number | undefined) => string): Column<PicturePair> => ({ id, head, numeric: true, value: (pair) => pair[id], show: (pair) => write(pair[id]) });

export const pairColumns: Column<PicturePair>[] = [
  { id: "subscriber", head: "Subscriber", value: ({ subscriber }) => subscriber },
  { id: "node", head: "Node", value: ({ node }) => node },
  { id: "known", head: "Known", numeric: true, value: ({ knownPercent }) => knownPercent, show: ({ knownPercent }) => percent(knownPercent) },
  ofPair("errorMedian", "Error, median", metres),
  ofPair("errorMean", "Error, mean", metres),
  ofPair("errorP95", "Error, 95 %", metres),
  ofPair("ageMedian", "Age, median", duration),
  ofPair("ageP95", "Age, 95 %", duration),
];
