import { useQuery, keepPreviousData } from "@tanstack/react-query";
import { useDebouncedValue } from "@mantine/hooks";
import { useMemo, useSyncExternalStore } from "react";
import { fromArchive } from "../../archive/client";
import { post } from "../../components/judgement";
import { useObjects } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import type { components } from "../../types/console.gen";
import type { Snapshot, TextModel } from "./text/model";
import { loadSchemas, type Schemas } from "./text/schema";

/** Forecast of what an experiment or campaign takes, and when it would start. */
export type Forecast = components["schemas"]["Forecast"];

export function useText(model: TextModel): Snapshot {
  return useSyncExternalStore(model.subscribe, model.getSnapshot);
}

export function useSchemas(): Schemas | undefined {
  return useQuery({ queryKey: ["schemas"], queryFn: loadSchemas, staleTime: Infinity }).data;
}

const forecastPauseMilliseconds = 1500;

/** useForecast asks the cluster, so that it waits longer than a judgement does. fresh is set if the forecast is that of the present text. */
export function useForecast(text: string, namespace: string, valid: boolean): { forecast: Forecast | undefined; error: Error | null; fresh: boolean } {
  const [settled] = useDebouncedValue(text, forecastPauseMilliseconds);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ["forecast", settled, namespace],
    queryFn: ({ signal }) => post<Forecast>("forecast", namespace, settled, signal),
    placeholderData: keepPreviousData,
    enabled: valid && settled === text,
    gcTime: 60_000,
    staleTime: 30_000,
  });
  return { forecast: data, error, fresh: settled === text && !isPlaceholderData && data !== undefined };
}

/** useNormal is the spec of a text that does not change, with all defaults and in one order; undefined until it is known. */
export function useNormal(text: string): string | undefined {
  return useQuery({ queryKey: ["normal", text], queryFn: ({ signal }) => post<Forecast>("forecast", "", text, signal), staleTime: Infinity }).data?.normal;
}

/** useTakenNames are the names of experiments that a namespace has or had, as far as the user may see them; undefined until they are known. */
export function useTakenNames(namespace: string): ReadonlySet<string> | undefined {
  const { objects, error } = useObjects(experiments, { namespace });
  const archived = useQuery({
    queryKey: ["run names", namespace],
    queryFn: ({ signal }) => fromArchive<{ name?: string }[] | { runs?: { name?: string }[] }>(namespace, `/runs?namespace=${encodeURIComponent(namespace)}`, signal),
    retry: false,
    staleTime: 60_000,
  });
  const isKnown = (objects !== undefined || error) && !archived.isPending;
  return useMemo(() => {
    if (!isKnown) return undefined;
    const runs = Array.isArray(archived.data) ? archived.data : (archived.data?.runs ?? []);
    return new Set([...(objects ?? []).map((e) => e.metadata.name), ...runs.map((run) => run.name ?? "")]);
  }, [isKnown, objects, archived.data]);
}
