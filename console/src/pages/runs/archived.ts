import type { RunSummary } from "../../archive/types";
import { passes, type Filter } from "../home/entries";

/** ArchivedRun is a run as the list shows it. */
export interface ArchivedRun {
  namespace: string;
  name: string;
  uid: string;
  phase: string;
  t0: string | undefined;
  /** campaign with the round; empty for other runs. */
  campaign: string;
  keptUp: boolean | undefined;
  bytes: number | undefined;
  /** problem with the run's records; empty if all could be read. */
  problem: string;
}

/** archivedRuns of several lists, each newest first, as one. */
export function archivedRuns(lists: readonly (readonly RunSummary[])[]): ArchivedRun[] {
  return lists
    .flatMap(dated)
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    .map(({ run: { namespace, name, uid, phase, t0, campaign, keptUp, bytes, problem } }) => ({ namespace, name, uid, phase, t0, campaign: campaign ? `${campaign.name}, round ${campaign.round}` : "", keptUp, bytes, problem: problem ?? "" }));
}

/** dated gives a run without T0 the time of the next older one, so that it stays before that. */
function dated(newestFirst: readonly RunSummary[]): { run: RunSummary; at: number }[] {
  let at = -Infinity;
  return newestFirst
    .toReversed()
    .map((run) => {
      if (run.t0 !== undefined) at = Date.parse(run.t0);
      return { run, at };
    })
    .reverse();
}

/** chosenRuns are those that a filter leaves, in their order. */
export function chosenRuns(runs: readonly ArchivedRun[], filter: Filter): ArchivedRun[] {
  return runs.filter((run) => passes(run, `${run.namespace} ${run.name} ${run.phase} ${run.campaign} ${run.uid} ${run.problem}`, filter));
}
