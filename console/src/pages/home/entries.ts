import type { Campaign, Experiment } from "../../types";
import { isOver, isWaiting, progressOf, stage, whyWaiting } from "../experiment/state";

/** Groups in the order in which they are shown. */
export const groups = ["running", "waiting", "finished"] as const;
export type Group = (typeof groups)[number];

/** Entry is an experiment or a campaign, as the list shows it. */
export interface Entry {
  key: string;
  kind: "experiment" | "campaign";
  namespace: string;
  name: string;
  uid: string;
  /** recorded is set if the archive has what was measured. */
  recorded: boolean;
  phase: string;
  group: Group;
  /** campaign whose run it is; empty for others. */
  campaign: string;
  /** nodes that are up, or runs that are done, of all. */
  count: string;
  /** place in the cluster's queue; 0 for none. */
  place: number;
  expectedStart: string | undefined;
  progress: number | undefined;
  /** note says what is happening, or why it waits. */
  note: string;
  delivered: string;
  medianDelay: string;
  keptUp: boolean | undefined;
  offBy: string;
  /** since it runs, waits, or has ended. */
  since: string;
}

export interface Filter {
  namespace: string;
  phase: string;
  words: string;
  /** Runs of campaigns are shown too. */
  runs: boolean;
}

/** filterOf the address's search parameters; others are ignored. */
export function filterOf(search: Record<string, unknown>): Filter {
  const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
  return { namespace: text(search.ns), phase: text(search.phase), words: text(search.q), runs: search.runs !== "hide" };
}

/** searchOf a filter is what filterOf reads; it leaves out of the address what is not set. */
export function searchOf(filter: Filter): Record<string, string> {
  return {
    ...(filter.namespace && { ns: filter.namespace }),
    ...(filter.phase && { phase: filter.phase }),
    ...(filter.words && { q: filter.words }),
    ...(!filter.runs && { runs: "hide" }),
  };
}

function groupOf(e: Experiment): Group {
  if (isOver(e)) return "finished";
  return isWaiting(e) ? "waiting" : "running";
}

/** entryOfExperiment is what the list shows of it. */
export function entryOfExperiment(e: Experiment): Entry {
  const { metadata, status = {} } = e;
  const group = groupOf(e);
  const created = metadata.creationTimestamp ?? "";
  const times: Record<Group, string | undefined> = { running: status.startTime, waiting: created, finished: status.completionTime };
  return {
    key: `experiment/${metadata.namespace ?? ""}/${metadata.name}`,
    kind: "experiment",
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: metadata.uid ?? "",
    recorded: isOver(e) && (status.t0 !== undefined || status.phase === "Succeeded"),
    phase: stage(e),
    group,
    campaign: metadata.labels?.["vignette.dev/campaign"] ?? "",
    count: status.nodes?.summary ?? "",
    place: group === "waiting" ? (status.queue?.position ?? 0) : 0,
    expectedStart: group === "waiting" ? status.queue?.expectedStart : undefined,
    progress: group === "running" ? progressOf(e) : undefined,
    note: group === "waiting" ? whyWaiting(e) : (status.message ?? ""),
    delivered: status.results?.deliveredPercent ?? "",
    medianDelay: status.results?.medianDelay ?? "",
    keptUp: status.results?.keptUp,
    offBy: status.results?.offByAtMost ?? "",
    since: times[group] ?? created,
  };
}

const campaignGroups: Record<string, Group> = { Pending: "waiting", Scheduled: "waiting", Suspended: "waiting", Succeeded: "finished", Failed: "finished" };

/** entryOfCampaign is what the list shows of it. */
export function entryOfCampaign(c: Campaign): Entry {
  const { metadata, status = {} } = c;
  const { succeeded = 0, failed = 0, skipped = 0, total = 0, summary = "" } = status.counts ?? {};
  const created = metadata.creationTimestamp ?? "";
  const group = campaignGroups[status.phase ?? "Pending"] ?? "running";
  return {
    key: `campaign/${metadata.namespace ?? ""}/${metadata.name}`,
    kind: "campaign",
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: metadata.uid ?? "",
    recorded: false,
    phase: status.phase ?? "Submitted",
    group,
    campaign: "",
    count: summary,
    place: 0,
    expectedStart: undefined,
    progress: total > 0 ? (100 * (succeeded + failed + skipped)) / total : undefined,
    note: status.message ?? "",
    delivered: "",
    medianDelay: "",
    keptUp: undefined,
    offBy: "",
    since: (group === "finished" ? status.roundCompletionTime : undefined) ?? status.roundStartTime ?? created,
  };
}

/** Filtered is what a filter looks at, besides texts. */
export type Filtered = Pick<Entry, "namespace" | "phase" | "campaign">;

/** passes reports whether a filter leaves an entry with that text. */
export function passes(entry: Filtered, text: string, filter: Filter): boolean {
  if (filter.namespace && entry.namespace !== filter.namespace) return false;
  if (filter.phase && entry.phase !== filter.phase) return false;
  if (!filter.runs && entry.campaign) return false;
  const within = text.toLowerCase();
  return filter.words.toLowerCase().split(/\s+/).every((word) => within.includes(word));
}

/** arrange the entries that a filter leaves: campaigns first, then who comes first in the queue, or who came last. */
export function arrange(entries: readonly Entry[], filter: Filter): Entry[] {
  const shown = entries.filter((entry) => passes(entry, `${entry.namespace} ${entry.name} ${entry.phase} ${entry.note}`, filter));
  return shown.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || byKind(a, b) || byPlace(a, b) || (a.since < b.since ? 1 : a.since > b.since ? -1 : 0));
}

function byKind(a: Entry, b: Entry): number {
  return Number(a.kind === "experiment") - Number(b.kind === "experiment");
}

function byPlace(a: Entry, b: Entry): number {
  return (a.place || Infinity) === (b.place || Infinity) ? 0 : (a.place || Infinity) - (b.place || Infinity);
}

/** Line of the list: an entry, or the heading of a group. */
export type Line = { heading: Group; count: number } | { entry: Entry };

/** linesOf arranged entries, with a heading before each group. */
export function linesOf(entries: readonly Entry[]): Line[] {
  return groups.flatMap((group): Line[] => {
    const own = entries.filter((entry) => entry.group === group);
    return own.length === 0 ? [] : [{ heading: group, count: own.length }, ...own.map((entry) => ({ entry }))];
  });
}
