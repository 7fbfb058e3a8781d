import { useQuery } from "@tanstack/react-query";
import { fromArchive } from "../../archive/client";
import type { Manifest, RunState } from "../../archive/types";
import type { Experiment } from "../../types";
import { Refusal } from "../../kubernetes/client";
import { isOver, isWaiting } from "./state";

// The answer has the whole plan, so that large experiments are asked for less often.
const largeNodes = 100;

/** useRunState reads the state that the results server has of a run, again and again until it is over. */
export function useRunState(e: Experiment | undefined) {
  const namespace = e?.metadata.namespace ?? "";
  const uid = e?.metadata.uid ?? "";
  const milliseconds = (e?.status?.nodes?.total ?? 0) > largeNodes ? 5_000 : 2_000;
  return useQuery({
    queryKey: ["run", uid, "live"],
    queryFn: ({ signal }) => fromArchive<RunState>(namespace, `/runs/${encodeURIComponent(uid)}?live=true`, signal),
    enabled: e !== undefined && uid !== "" && !isWaiting(e),
    refetchInterval: e !== undefined && isOver(e) ? false : milliseconds,
    // The results server knows a run a moment after it was admitted.
    retry: (count, error) => count < 1 && !(error instanceof Refusal && error.status < 500),
    gcTime: 60_000,
  });
}

/** useManifest reads which files the archive has of a run. */
export function useManifest(e: Experiment) {
  const namespace = e.metadata.namespace ?? "";
  const uid = e.metadata.uid ?? "";
  return useQuery({
    queryKey: ["run", uid, "files"],
    queryFn: ({ signal }) => fromArchive<Manifest>(namespace, `/runs/${encodeURIComponent(uid)}/files`, signal),
    enabled: uid !== "",
    refetchInterval: isOver(e) ? false : 10_000,
  });
}

/** pathOfFile below the archive's path of a run. */
export function pathOfFile(uid: string, path: string): string {
  return `/runs/${encodeURIComponent(uid)}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}
