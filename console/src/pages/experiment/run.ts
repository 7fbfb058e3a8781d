import { useQuery, type Query } from "@tanstack/react-query";
import { fromArchive } from "../../archive/client";
import { askAgainAfter } from "../../archive/polling";
import { filesQuery } from "../../archive/runs";
import type { RunState } from "../../archive/types";
import type { Experiment } from "../../types";
import { Refusal } from "../../kubernetes/client";
import { isOver, isWaiting, neverRan } from "./state";

// The answer has the whole plan, so that large experiments are asked for less often.
const largeNodes = 100;
const whileAnalysed = 10_000;

/** pauseOf the questions for a run's state; false if it changes no more. The archive may know the end later than the cluster. */
export function pauseOf(e: Experiment | undefined, state: RunState | undefined, error: Error | null): number | false {
  const usual = (e?.status?.nodes?.total ?? 0) > largeNodes ? 5_000 : 2_000;
  if (e === undefined || !isOver(e)) return askAgainAfter(error, usual);
  const complete = state !== undefined && (state.results !== undefined || state.plan.phase === "Failed");
  return complete ? false : askAgainAfter(error, whileAnalysed);
}

/** keyOf what is read of a run. It changes when the run ends, so that everything is read once more. */
export function keyOf(e: Experiment | undefined, what: string): string[] {
  return ["run", e?.metadata.namespace ?? "", e?.metadata.uid ?? "", what, e !== undefined && isOver(e) ? "at the end" : "so far"];
}

/** ofSameRun is what was read of the run before its end, until the rest is there. */
function ofSameRun(uid: string) {
  return <T>(before: T | undefined, query: Pick<Query, "queryKey"> | undefined): T | undefined => (query?.queryKey[2] === uid ? before : undefined);
}

/** useRunState reads the state that the results server has of a run, again and again until it is over. */
export function useRunState(e: Experiment | undefined) {
  const namespace = e?.metadata.namespace ?? "";
  const uid = e?.metadata.uid ?? "";
  return useQuery<RunState>({
    queryKey: keyOf(e, "live"),
    queryFn: ({ signal }) => fromArchive<RunState>(namespace, `/runs/${encodeURIComponent(uid)}?live=true`, signal),
    enabled: e !== undefined && uid !== "" && !isWaiting(e) && !neverRan(e),
    placeholderData: ofSameRun(uid),
    refetchInterval: ({ state }) => pauseOf(e, state.data, state.error),
    // The results server knows a run a moment after it was admitted.
    retry: (count, error) => count < 1 && !(error instanceof Refusal && error.status < 500),
    gcTime: 60_000,
  });
}

/** useManifest reads which files the archive has of a run. */
export function useManifest(e: Experiment) {
  const uid = e.metadata.uid ?? "";
  return useQuery({
    ...filesQuery(e.metadata.namespace ?? "", uid, isOver(e)),
    enabled: uid !== "" && !isWaiting(e) && !neverRan(e),
    placeholderData: ofSameRun(uid),
    refetchInterval: ({ state }) => (isOver(e) ? false : askAgainAfter(state.error, 10_000)),
  });
}
