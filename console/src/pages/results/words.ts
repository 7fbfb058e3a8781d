import { headlineGroup } from "../../archive/runs";
import type { Figures, Gap, GroupResult, Interval, Late, NetworkResult, Results } from "../../archive/types";
import { count, digits, duration, many, percent, range } from "../../components/figures";
import { afterT0 } from "../../components/time";

/** when writes an interval after T0, such as T0+1m00s to T0+2m05s; empty without one. */
export function when({ fromSeconds, toSeconds }: Pick<Gap, "fromSeconds" | "toSeconds">): string {
  if (fromSeconds === undefined && toSeconds === undefined) return "";
  if (fromSeconds === undefined) return `until ${afterT0(toSeconds ?? 0)}`;
  if (toSeconds === undefined) return `from ${afterT0(fromSeconds)}`;
  const [from, to] = [afterT0(fromSeconds), afterT0(toSeconds)];
  return from === to ? `at ${from}` : `${from} to ${to}`;
}

/** A figure of the headline, with its interval of confidence and what it is of. */
export interface Headline {
  label: string;
  value: string;
  note: string;
}

const timeRange = (interval: Interval | null | undefined) => range(interval, duration);

/** headlinesOf the results: what a reader looks for first. */
export function headlinesOf(results: Results): Headline[] {
  const group = headlineGroup(results);
  const { messages, delaySeconds, confidence, requests } = group;
  const lines: Headline[] = [
    {
      label: "Delivered",
      value: percent(deliveredOf(group)),
      note: joined(range(confidence?.deliveredPercent, percent), `${count(messages.received)} of ${count(offeredOf(group))} deliveries`),
    },
    { label: "Messages sent", value: count(messages.sent), note: `of ${count(messages.triggered ?? messages.sent)} that apps wanted to send` },
    { label: "Median delay", value: duration(delaySeconds?.median), note: timeRange(confidence?.medianSeconds) },
    { label: "Mean delay", value: duration(delaySeconds?.mean), note: timeRange(confidence?.meanSeconds) },
    { label: "Greatest delay", value: duration(delaySeconds?.max), note: delaySeconds?.p95 === undefined ? "" : `95 % took at most ${duration(delaySeconds.p95)}` },
  ];
  for (const { protocol, messages, medianBytes } of results.messageSizes ?? []) {
    lines.push({ label: `Message on the wire, ${protocol}`, value: `${count(medianBytes)} B`, note: `median of ${count(messages)}` });
  }
  if (!requests) return lines;
  return [
    ...lines,
    {
      label: "Requests with a receipt",
      value: percent(requests.receiptPercent),
      note: joined(range(requests.confidence?.receiptPercent, percent), `${count(requests.receipts)} of ${count(requests.triggered)}`),
    },
    { label: "Mean response time", value: duration(requests.responseSeconds?.mean), note: timeRange(requests.confidence?.meanSeconds) },
  ];
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

/** offeredOf deliveries; in older results these are the expected ones. */
export function offeredOf({ messages }: Figures): number {
  return messages.offered ?? messages.expected;
}

/** neverSentOf the offered deliveries, which is not the number of messages; undefined in older results. */
export function neverSentOf({ messages }: Figures): number | undefined {
  return messages.offered === undefined ? undefined : messages.offered - messages.expected;
}

/** deliveredOf the offered deliveries, in per cent; undefined if there were none. */
export function deliveredOf(figures: Figures): number | undefined {
  const offered = offeredOf(figures);
  return figures.messages.deliveredPercent ?? (offered === 0 ? undefined : (100 * figures.messages.received) / offered);
}

/** What the verdict says, in words. */
export interface VerdictWords {
  state: "good" | "bad" | "unknown";
  title: string;
  sentences: string[];
}

export function verdictWords(results: Results): VerdictWords {
  const { verdict } = results;
  if (!verdict) return { state: "unknown", title: "It is not known whether the emulation kept up", sentences: ["There is no verdict. The gaps say why."] };
  const off = offBy(headlineGroup(results));
  const sentences = [...(verdict.exceeded ?? []), ...(off === "" ? [] : [`Because the emulation was late, the figures may be off by at most ${off}.`])];
  return verdict.keptUp
    ? { state: "good", title: "The emulation kept up", sentences }
    : { state: "bad", title: "The emulation did not keep up", sentences };
}

/** offBy writes by how much the figures of a group may be off; empty if that is not known. */
export function offBy({ bounds, delaySeconds, messages }: GroupResult): string {
  const farthest = (interval: Interval | null | undefined, value: number | undefined) =>
    interval && value !== undefined ? Math.max(0, interval.high - value, value - interval.low) : undefined;
  const median = farthest(bounds?.delaySeconds?.median, delaySeconds?.median);
  const p95 = farthest(bounds?.delaySeconds?.p95, delaySeconds?.p95);
  const delivered = farthest(bounds?.deliveredPercent, messages.deliveredPercent);
  return [
    median === undefined ? "" : `${duration(median)} of the median`,
    p95 === undefined ? "" : `${duration(p95)} of the 95th percentile`,
    delivered === undefined ? "" : `${digits(delivered)} points of the delivered share`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}

/** lateWords says what was late, and by how much. A loss has no lateness. */
export function lateWords({ node, what, worstSeconds }: Late): string {
  return `${what}${node === "" ? "" : ` at ${node}`}${worstSeconds === 0 ? "" : `, by ${duration(worstSeconds)} at worst`}`;
}

type Frames = NonNullable<NetworkResult["frames"]>;

/** framesDropped by a network's radios, for all reasons. */
export function framesDropped(frames: Frames | undefined): number | undefined {
  return frames && Object.values(frames.drops ?? {}).reduce((sum, n) => sum + n, 0);
}

/** droppedWords have the number of dropped frames, and the reasons, such as 23 (20 loss, 3 queueFull). */
export function droppedWords(frames: Frames | undefined): string {
  const reasons = reasonsOf(frames?.drops).map(([reason, n]) => `${count(n)} ${reason}`);
  return count(framesDropped(frames)) + (reasons.length > 0 ? ` (${reasons.join(", ")})` : "");
}

/** reasonsOf failed requests or dropped frames, the most frequent first. */
export function reasonsOf(failed: Record<string, number> | null | undefined): [string, number][] {
  return Object.entries(failed ?? {}).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

/** summary of gaps and warnings for a tab's name. */
export function gapsLabel(results: Results): string {
  const warnings = results.warnings?.length ?? 0;
  const gaps = results.gaps?.length ?? 0;
  if (warnings + gaps === 0) return "No gaps";
  return [warnings > 0 ? many(warnings, "warning") : "", gaps > 0 ? many(gaps, "gap") : ""].filter((part) => part !== "").join(", ");
}
