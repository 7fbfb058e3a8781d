import { headlineGroup } from "../../archive/runs";
import type { Results, RunSummary } from "../../archive/types";
import { secondsOf } from "../../components/time";
import type { Campaign } from "../../types";

/** What a run has measured in its headline group. */
export interface Measured {
  received: number;
  offered: number;
  medianSeconds: number | undefined;
  keptUp: boolean | undefined;
  offBy: string;
  warnings: number;
  gaps: number;
  /** These are in the results only, not in the campaign's status. */
  more?: {
    meanSeconds: number | undefined;
    p95Seconds: number | undefined;
    maxSeconds: number | undefined;
    receipts: number;
    requests: number;
    responseSeconds: number | undefined;
  };
}

/** Run is one point of the matrix in one of its repeats. */
export interface Run {
  name: string;
  uid: string;
  point: string;
  levels: Record<string, string>;
  repeat: number | undefined;
  phase: string;
  message: string;
  tookSeconds: number | undefined;
  /** specDigest is unknown before the start, and of older records in the archive. */
  specDigest?: string;
  measured: Measured | undefined;
  /** archived: of another round or a deleted campaign, whose experiments are gone. Others may have their names. */
  archived?: true;
}

type CampaignRun = NonNullable<NonNullable<Campaign["status"]>["runs"]>[number];

/** isOver reports whether a campaign starts no further run: its only round has ended. */
export function isOver({ spec, status }: Campaign): boolean {
  return spec.schedule === undefined && (status?.phase === "Succeeded" || status?.phase === "Failed");
}

/** runsOfStatus are those of the round that is under way or was last. */
export function runsOfStatus(campaign: Campaign): Run[] {
  return (campaign.status?.runs ?? []).map((run) => ({
    name: run.name,
    uid: run.uid ?? "",
    point: run.point,
    levels: run.levels ?? {},
    repeat: run.repeat,
    phase: run.phase,
    message: run.message ?? "",
    tookSeconds: run.startTime && run.completionTime ? (Date.parse(run.completionTime) - Date.parse(run.startTime)) / 1000 : undefined,
    ...(run.specDigest !== undefined && { specDigest: run.specDigest }),
    // A failed run measured only a part.
    measured: run.phase === "Succeeded" && run.results ? measuredOfStatus(run.results) : undefined,
  }));
}

function measuredOfStatus(summary: NonNullable<CampaignRun["results"]>): Measured {
  return {
    received: summary.received,
    offered: Math.max(summary.offered ?? 0, summary.expected),
    medianSeconds: summary.medianDelay === undefined || summary.medianDelay === "" ? undefined : secondsOf(summary.medianDelay),
    keptUp: summary.keptUp,
    offBy: summary.offByAtMost ?? "",
    warnings: summary.warnings ?? 0,
    gaps: summary.gaps,
  };
}

/** measuredOf the results of a run. */
export function measuredOf(results: Results): Measured {
  const { messages, delaySeconds, requests } = headlineGroup(results);
  return {
    received: messages.received,
    offered: messages.offered ?? messages.expected,
    medianSeconds: delaySeconds?.median,
    keptUp: results.verdict?.keptUp,
    offBy: "",
    warnings: results.warnings?.length ?? 0,
    gaps: results.gaps?.length ?? 0,
    more: {
      meanSeconds: delaySeconds?.mean,
      p95Seconds: delaySeconds?.p95,
      maxSeconds: delaySeconds?.max,
      receipts: requests?.receipts ?? 0,
      requests: requests?.triggered ?? 0,
      responseSeconds: requests?.responseSeconds?.mean,
    },
  };
}

/** offByMilliseconds is the figure with which the words about a run begin: that of the median. */
export function offByMilliseconds(words = ""): number | undefined {
  const milliseconds = Number.parseFloat(words);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

/** ArchivedRound of a campaign: its runs as the archive lists them. */
export interface ArchivedRound {
  round: number;
  uid: string;
  runs: Run[];
}

/** archivedRounds of the campaigns of a name, the newest first. With a UID only those of that campaign. */
export function archivedRounds(summaries: readonly RunSummary[], name: string, uid: string | undefined): ArchivedRound[] {
  const rounds = new Map<string, ArchivedRound>();
  for (const { campaign, name: experiment, uid: run, phase } of summaries) {
    if (campaign?.name !== name || (uid !== undefined && campaign.uid !== uid)) continue;
    const key = `${campaign.uid} ${campaign.round}`;
    const round = rounds.get(key) ?? { round: campaign.round, uid: campaign.uid, runs: [] };
    rounds.set(key, round);
    round.runs.push({
      name: experiment,
      uid: run,
      point: campaign.point,
      levels: campaign.levels ?? {},
      repeat: repeatIn(experiment, campaign.point),
      phase,
      message: "",
      tookSeconds: undefined,
      ...(campaign.specDigest !== undefined && { specDigest: campaign.specDigest }),
      measured: undefined,
      archived: true,
    });
  }
  for (const { runs } of rounds.values()) runs.sort((a, b) => compareTexts(a.point, b.point) || (a.repeat ?? 0) - (b.repeat ?? 0) || compareTexts(a.name, b.name));
  return [...rounds.values()];
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** repeatIn the name of a run, which ends with the point and the repeat. */
export function repeatIn(name: string, point: string): number | undefined {
  const [, repeat] = /-(\d+)$/.exec(name) ?? [];
  return point === "" || repeat === undefined ? undefined : Number(repeat);
}

export interface Axis {
  name: string;
  levels: string[];
}

/** none stands for a level that a run does not have. */
export const none = "-";

/** axesOf a round in the order of the spec. Axes and levels that only runs have, as the spec was edited, come last. */
export function axesOf(campaign: Campaign | undefined, runs: readonly Run[]): Axis[] {
  const axes = new Map<string, Set<string>>();
  const used = new Map<string, Set<string>>();
  for (const { levels } of runs) for (const [axis, level] of Object.entries(levels)) used.set(axis, (used.get(axis) ?? new Set<string>()).add(level));
  for (const { name, levels } of campaign?.spec.matrix?.axes ?? []) axes.set(name, new Set((levels ?? []).map((level) => level.name).filter((level) => runs.length === 0 || used.get(name)?.has(level))));
  for (const name of [...used.keys()].sort(compareTexts)) {
    const known = axes.get(name) ?? new Set<string>();
    for (const level of used.get(name) ?? []) known.add(level);
    axes.set(name, known);
  }
  return [...axes].map(([name, levels]) => ({ name, levels: [...levels, ...(runs.some((run) => run.levels[name] === undefined) ? [none] : [])] }));
}

export function levelOf(run: Run, axis: string): string {
  return run.levels[axis] ?? none;
}

/** fixed levels of axes; those that are not in it are averaged. */
export type Fixed = Record<string, string>;

/** selected are the runs that have all fixed levels. */
export function selected(runs: readonly Run[], fixed: Fixed): Run[] {
  return runs.filter((run) => Object.entries(fixed).every(([axis, level]) => levelOf(run, axis) === level));
}

/** pageOf a run: its record, or its experiment while it has no results. A run without an experiment has none. */
export function pageOf(namespace: string, { uid, name, phase, archived }: Run) {
  if (uid === "") return undefined;
  return archived || phase === "Succeeded" ? ({ to: "/ns/$namespace/runs/$uid", params: { namespace, uid } } as const) : ({ to: "/ns/$namespace/experiments/$name", params: { namespace, name } } as const);
}
