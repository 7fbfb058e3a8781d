import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { fromArchive } from "../../archive/client";
import type { RunState } from "../../archive/types";
import type { Refusal } from "../../kubernetes/client";
import { useObjectsIn } from "../../kubernetes/hooks";
import { experiments, type Pod } from "../../kubernetes/kinds";
import type { Lateness } from "./hosts";

const refetchMilliseconds = 15_000;
// Each answer has the run's plan; more at a time would be a load.
const mostRuns = 20;

/** Known lateness of running experiments. */
interface Known {
  runs: Lateness[];
  /** running experiments, also those of which it is not known. */
  running: number;
  /** error is why the experiments are not known. */
  error: Refusal | undefined;
}

/** useLateness reads how late the emulation of running experiments is. Of many, it reads the first. */
export function useLateness(pods: readonly Pod[]): Known {
  const { objects, error } = useObjectsIn(experiments, undefined);
  const running = useMemo(() => (objects ?? []).filter((e) => e.status?.phase === "Running"), [objects]);
  const runs = useQueries({
    queries: running.slice(0, mostRuns).map((e) => ({
      queryKey: ["run", e.metadata.uid, "lateness"],
      queryFn: async () => {
        const uid = e.metadata.uid ?? "";
        const { live } = await fromArchive<RunState>(e.metadata.namespace ?? "", `/runs/${encodeURIComponent(uid)}?live=true`);
        return live && { uid, lateReleases: live.lateReleases, slotsMissed: live.slotsMissed, worstSeconds: live.worstLatenessSeconds };
      },
      refetchInterval: refetchMilliseconds,
      retry: false,
    })),
    combine: (results) =>
      results.flatMap(({ data }) => {
        if (!data) return [];
        const hosts = pods.filter((pod) => pod.metadata.labels?.["vignette.dev/experiment-uid"] === data.uid).map((pod) => pod.spec?.nodeName ?? "");
        return [{ ...data, hosts: [...new Set(hosts)] }];
      }),
  });
  return { runs, running: running.length, error };
}

/** knownText says of how many running experiments the lateness is known; nothing if it is known of all. */
export function knownText(known: number, running: number): string {
  if (known >= running) return "";
  return `Emulation is that of ${known} of ${running} running experiments. The page asks the archive for ${mostRuns} at most.`;
}
