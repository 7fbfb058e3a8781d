import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { askJSON } from "../../kubernetes/client";
import { filePath } from "../../archive/runs";
import type { Results } from "../../archive/types";
import { measuredOf, type Run } from "./round";

// The browser has six connections to the console, and others need some too.
const readers = 3;
// As many results are shown at once, so that a map of 1000 runs is not drawn 1000 times.
const showEvery = 25;

interface Reading {
  results: ReadonlyMap<string, Results>;
  error: unknown;
}

const nothingRead: Reading = { results: new Map(), error: undefined };

/** useResults adds what only the results of the runs say, a few runs at a time, if that is wanted. */
export function useResults(namespace: string, runs: Run[], wanted: boolean): { runs: Run[]; read: number; wanted: number; error: unknown } {
  const queries = useQueryClient();
  const [{ results, error }, setReading] = useState<Reading>(nothingRead);
  const uids = useMemo(() => (wanted ? runs.filter(({ phase, uid }) => phase === "Succeeded" && uid !== "").map(({ uid }) => uid) : []), [runs, wanted]);
  const key = uids.join(" ");
  useEffect(() => {
    const stop = new AbortController();
    const left = key === "" ? [] : key.split(" ");
    const found = new Map<string, Results>();
    let failure: unknown;
    const show = () => {
      if (!stop.signal.aborted) setReading({ results: new Map(found), error: failure });
    };
    const reader = async () => {
      for (let uid = left.shift(); uid !== undefined && !stop.signal.aborted; uid = left.shift()) {
        const asked = uid;
        try {
          found.set(asked, await queries.query({ queryKey: ["results", namespace, asked], queryFn: ({ signal }) => readResults(namespace, asked, signal), staleTime: Infinity, gcTime: Infinity }));
        } catch (reason) {
          failure ??= reason;
        }
        if (found.size % showEvery === 0) show();
      }
    };
    void Promise.all(Array.from({ length: readers }, reader)).then(show);
    return () => {
      stop.abort();
    };
  }, [key, namespace, queries]);
  const merged = useMemo(
    () =>
      uids.length === 0
        ? runs
        : runs.map((run) => {
            const own = results.get(run.uid);
            return own ? { ...run, measured: { ...measuredOf(own), offBy: run.measured?.offBy ?? "" } } : run;
          }),
    [runs, results, uids],
  );
  return { runs: merged, read: uids.filter((uid) => results.has(uid)).length, wanted: error === undefined ? uids.length : 0, error };
}

async function readResults(namespace: string, uid: string, signal: AbortSignal): Promise<Results> {
  const results = await askJSON<Results>(filePath(namespace, uid, "results/results.json"), { signal });
  // Of a thousand runs only what a map shows is kept.
  const { schemaVersion, experiment, phase, durationSeconds, headline, warnings, messages, delaySeconds, requests, groups, gaps, verdict } = results;
  return {
    ...{ schemaVersion, experiment, namespace, uid, phase, durationSeconds, messages, delaySeconds, gaps },
    groups: groups?.filter(({ name }) => name === headline) ?? null,
    publishers: null,
    networks: null,
    ...(headline !== undefined && { headline }),
    ...(warnings && { warnings }),
    ...(requests && { requests }),
    ...(verdict && { verdict: { keptUp: verdict.keptUp, late: null } }),
  };
}
