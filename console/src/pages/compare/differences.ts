import type { Difference, Estimate } from "../../archive/comparison";
import { duration, nothing, probability } from "../../components/figures";
import { leftMargin, shortened } from "../../components/plots/boxes";
import { greatest } from "../../components/plots/greatest";
import type { Inks } from "../../components/plots/inks";
import { figureColumn } from "../../components/plots/figureColumn";
import type { PlotLibrary, TextRow } from "../../components/plots/PlotFigure";
import type { Column } from "../../components/VirtualTable";

/** estimateText writes an estimate with its interval. */
export function estimateText(estimate: Estimate | null | undefined, write: (value: number) => string): string {
  if (!estimate) return nothing;
  const interval = estimate.low === null || estimate.high === null ? "" : ` [${write(estimate.low)}, ${write(estimate.high)}]`;
  return write(estimate.estimate) + interval;
}

/** signed writes a time with its sign, as it is a difference. */
export function signed(seconds: number): string {
  return seconds > 0 ? `+${duration(seconds)}` : duration(seconds);
}

export function points(value: number): string {
  return `${value > 0 ? "+" : ""}${value.toFixed(2)} points`;
}

/** Times of which differences are. */
export type Times = "delay" | "response time";

/** inWords says what delta means: how often a time of the second is longer than one of the first. */
export function inWords({ from, to, delay }: Difference, time: Times = "delay"): string {
  const delta = delay?.cliffsDelta?.estimate;
  if (delta === undefined) return `${time === "delay" ? "Delays" : "Response times"} cannot be compared.`;
  if (delta === 0) return `Neither ${from} nor ${to} tends to have longer ${time}s.`;
  const share = Math.round(50 * (1 + Math.abs(delta)));
  const [longer, shorter] = delta > 0 ? [to, from] : [from, to];
  return `A ${time} of ${longer} is longer than one of ${shorter} in ${share} % of pairs, ties counting half.`;
}

/** differenceRows are texts, and beside them the numbers by which they are sorted. */
export function differenceRows(differences: readonly Difference[], time: Times = "delay"): TextRow[] {
  return differences.map((difference) => {
    const { from, to, delay, loss, withinLateness = [] } = difference;
    const [test, lossTest] = [delay?.brunnerMunzel, loss?.welch];
    return {
      pair: `${from} → ${to}`,
      shift: estimateText(delay?.shiftSeconds, signed),
      delta: estimateText(delay?.cliffsDelta, (value) => value.toFixed(2)),
      p: probability(test?.pHolm, test?.tooFew),
      loss: estimateText(loss?.percentagePoints, points),
      lossP: probability(lossTest?.pHolm, lossTest?.tooFew),
      lateness: withinLateness.join(", "),
      words: inWords(difference, time),
      shiftNumber: delay?.shiftSeconds?.estimate,
      deltaNumber: delay?.cliffsDelta?.estimate,
      pNumber: test?.tooFew ? undefined : test?.pHolm,
      lossNumber: loss?.percentagePoints?.estimate,
      lossPNumber: lossTest?.tooFew ? undefined : lossTest?.pHolm,
    };
  });
}

const lateness: Column<TextRow> = { id: "lateness", head: "Within lateness", value: (row) => row.lateness };

export const differenceColumns = columnsOf("delays", "of losses", "of loss", [lateness]);
export const requestDifferenceColumns = columnsOf("response times", "without a receipt", "without a receipt");

function columnsOf(times: string, losses: string, loss: string, more: Column<TextRow>[] = []): Column<TextRow>[] {
  return [
    { id: "pair", head: "From → to", value: (row) => row.pair },
    figureColumn("shift", `Shift of ${times}`),
    figureColumn("delta", "Cliff's delta"),
    figureColumn("p", "p (Holm)"),
    figureColumn("loss", `Difference ${losses}`),
    figureColumn("lossP", `p ${loss} (Holm)`),
    ...more,
    { id: "words", head: "In words", value: (row) => row.words },
  ];
}

interface Effect {
  pair: string;
  estimate: number;
  low: number | null;
  high: number | null;
}

/** mostEffects are drawn at once. */
export const mostEffects = 60;

/** effectsOf differences are their values of Cliff's delta. */
export function effectsOf(differences: readonly Difference[]): Effect[] {
  return differences.flatMap(({ from, to, delay }) => (delay?.cliffsDelta ? [{ pair: `${from} → ${to}`, ...delay.cliffsDelta }] : []));
}

/** chosenEffects are the greatest ones, in the given order, if there are more than can be drawn. */
export function chosenEffects(effects: readonly Effect[]): Effect[] {
  return greatest(effects, mostEffects, ({ estimate }) => Math.abs(estimate));
}

export function drawEffects(plot: PlotLibrary, effects: Effect[], width: number, inks: Inks, time: Times): Element {
  const names = effects.map(({ pair }) => pair);
  const margin = leftMargin(names, width);
  return plot.plot({
    width,
    height: 70 + 26 * effects.length,
    marginLeft: margin,
    x: { domain: [-1, 1], label: `Cliff's delta: shorter ← → longer ${time}s`, grid: true },
    y: { label: null, domain: names, tickFormat: (name: string) => shortened(name, margin) },
    marks: [
      plot.ruleX([0]),
      plot.ruleY(
        effects.filter(({ low, high }) => low !== null && high !== null),
        { y: "pair", x1: "low", x2: "high", strokeWidth: 2, stroke: inks.mark, marker: "tick" },
      ),
      plot.dot(effects, { y: "pair", x: "estimate", fill: inks.mark, r: 5, title: ({ pair, estimate, low, high }: Effect) => `${pair}: ${estimateText({ estimate, low, high }, (value) => value.toFixed(2))}` }),
    ],
  });
}
