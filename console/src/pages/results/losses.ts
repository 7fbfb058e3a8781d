import type { Figures, Results } from "../../archive/types";
import { percent } from "../../components/figures";
import { leftMargin, shortened } from "../../components/plots/boxes";
import { greatest } from "../../components/plots/greatest";
import type { Inks } from "../../components/plots/inks";
import type { PlotLibrary, TextRow } from "../../components/plots/PlotFigure";
import type { Column } from "../../components/VirtualTable";
import { palette } from "../../theme/palette";
import { deliveredOf, offeredOf } from "./words";

/** Loss is the share of offered deliveries that did not arrive, in per cent. */
export interface Loss {
  name: string;
  /** lost on the way, and never sent. */
  lost: number;
  neverSent: number;
  low: number | undefined;
  high: number | undefined;
}

/** mostLosses are drawn at once. */
export const mostLosses = 60;

/** lossesOf the entries to which anything was offered. */
export function lossesOf(entries: readonly (Figures & { name: string })[]): Loss[] {
  return entries.flatMap((entry) => {
    const offered = offeredOf(entry);
    const delivered = deliveredOf(entry);
    if (offered === 0 || delivered === undefined) return [];
    const interval = entry.confidence?.deliveredPercent;
    const lost = (100 * entry.messages.lost) / offered;
    return [{ name: entry.name, lost, neverSent: Math.max(0, 100 - delivered - lost), low: interval ? 100 - interval.high : undefined, high: interval ? 100 - interval.low : undefined }];
  });
}

/** chosenLosses are the greatest ones, in the given order, if there are more than can be drawn. */
export function chosenLosses(losses: readonly Loss[]): Loss[] {
  return greatest(losses, mostLosses, ({ lost, neverSent }) => lost + neverSent);
}

/** lossesOfRun are those of groups, and of publishers where there is more than one. */
export function lossesOfRun({ groups, publishers }: Results): Loss[] {
  return lossesOf([...(groups ?? []), ...((publishers?.length ?? 0) > 1 ? (publishers ?? []) : [])]);
}

const lossParts = ["lost on the way", "never sent"];

/** lossLegend is the same in light and dark. */
export const lossLegend = [
  { label: "lost on the way", colour: palette.red },
  { label: "never sent", colour: palette.orange },
];

export function drawLosses(plot: PlotLibrary, losses: Loss[], width: number, inks: Inks): Element {
  const names = losses.map(({ name }) => name);
  const margin = leftMargin(names, width);
  const parts = losses.flatMap(({ name, lost, neverSent }) => [
    { name, share: lost, part: "lost on the way" },
    { name, share: neverSent, part: "never sent" },
  ]);
  return plot.plot({
    width,
    height: 60 + 26 * losses.length,
    marginLeft: margin,
    x: { label: "of offered deliveries", domain: [0, Math.max(1, ...losses.map(({ lost, neverSent, high }) => Math.max(high ?? 0, lost + neverSent)))], grid: true, tickFormat: (share: number) => `${share} %` },
    y: { label: null, domain: names, tickFormat: (name: string) => shortened(name, margin) },
    color: { domain: lossParts, range: [inks.bad, inks.part] },
    marks: [
      plot.barX(parts, plot.stackX({ y: "name", x: "share", fill: "part", insetTop: 4, insetBottom: 4, title: ({ name, share, part }: (typeof parts)[number]) => `${name}: ${percent(share)} ${part}` })),
      plot.ruleY(
        losses.filter(({ low }) => low !== undefined),
        { y: "name", x1: "low", x2: "high", strokeWidth: 1.5, marker: "tick" },
      ),
      plot.ruleX([0]),
    ],
  });
}

const share = (id: string, head: string): Column<TextRow> => ({ id, head, numeric: true, value: (row) => row[id], show: (row) => percent(row[id] as number | undefined) });

export const lossColumns: Column<TextRow>[] = [
  { id: "name", head: "Name", value: ({ name }) => name },
  share("lost", "Lost on the way"),
  share("neverSent", "Never sent"),
  share("low", "Interval from"),
  share("high", "to"),
];
