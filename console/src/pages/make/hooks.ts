import { useQuery, keepPreviousData } from "@tanstack/react-query";
import { useDebouncedValue } from "@mantine/hooks";
import { useSyncExternalStore } from "react";
import { fromArchive } from "../../archive/client";
import { askJSON } from "../../kubernetes/client";
import { useObjects } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import type { Finding } from "./text/findings";
import type { Snapshot, TextModel } from "./text/model";
import { loadSchemas, type Schemas } from "./text/schema";

/** Judgement of a text is that of `vignette validate`. */
export interface Judgement {
  valid: boolean;
  objects: string[];
  findings: Finding[];
  /** preview of what it takes; absent unless it was asked for. */
  preview?: Preview;
  /** normal is the spec with all defaults, in one order; absent unless it was asked for. */
  normal?: string;
}

/** Preview of what an experiment or campaign takes, as internal/console has it. */
export interface Preview {
  pods?: number;
  cpuCores?: number;
  memoryBytes?: number;
  durationSeconds?: number;
  /** points and runs of a campaign, and how many run at a time. */
  points?: number;
  runs?: number;
  parallelism?: number;
  campaignSeconds?: number;
  quotas?: { name: string; resource: string; needed: string; free: string; enough: boolean }[];
  start?: { admitted: boolean; position?: number; expectedStart?: string; message: string };
  /** unknown names what could not be read, and why. */
  unknown?: string[];
}

export function useText(model: TextModel): Snapshot {
  return useSyncExternalStore(model.subscribe, model.getSnapshot);
}

export function useSchemas(): Schemas | undefined {
  return useQuery({ queryKey: ["schemas"], queryFn: loadSchemas, staleTime: Infinity }).data;
}

function judge(text: string, parameters: Record<string, string>, signal: AbortSignal): Promise<Judgement> {
  return askJSON<Judgement>(`/console/v1/validate?${new URLSearchParams(parameters).toString()}`, { method: "POST", body: text, signal, headers: { "content-type": "application/yaml" } });
}

const pauseMilliseconds = 400;

/** useJudgement of a text, soon after it has changed; fresh is set if it is that of the present text. */
export function useJudgement(text: string): { judgement: Judgement | undefined; error: Error | null; fresh: boolean } {
  const [settled] = useDebouncedValue(text, pauseMilliseconds);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ["validate", settled],
    queryFn: ({ signal }) => judge(settled, {}, signal),
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    staleTime: Infinity,
  });
  return { judgement: data, error, fresh: settled === text && !isPlaceholderData && data !== undefined };
}

const previewPauseMilliseconds = 1500;

/** usePreview asks the cluster, so that it waits longer than a judgement does. */
export function usePreview(text: string, namespace: string, valid: boolean): { preview: Preview | undefined; error: Error | null; loading: boolean } {
  const [settled] = useDebouncedValue(text, previewPauseMilliseconds);
  const { data, error, isFetching } = useQuery({
    queryKey: ["preview", settled, namespace],
    queryFn: ({ signal }) => judge(settled, { namespace, preview: "true" }, signal),
    placeholderData: keepPreviousData,
    enabled: valid && settled === text,
    gcTime: 60_000,
    staleTime: 30_000,
  });
  return { preview: data?.preview, error, loading: isFetching || settled !== text };
}

/** useNormal is the spec of a text with all defaults and in one order; undefined until it is known. */
export function useNormal(text: string, valid: boolean): string | undefined {
  const [settled] = useDebouncedValue(text, pauseMilliseconds);
  return useQuery({
    queryKey: ["normal", settled],
    queryFn: ({ signal }) => judge(settled, { normal: "true" }, signal),
    enabled: valid,
    gcTime: 60_000,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  }).data?.normal;
}

/** useTakenNames are the names of experiments that a namespace has or had, as far as the user may see them. */
export function useTakenNames(namespace: string): ReadonlySet<string> {
  const { objects } = useObjects(experiments, { namespace });
  const archived = useQuery({
    queryKey: ["run names", namespace],
    queryFn: ({ signal }) => fromArchive<{ name?: string }[] | { runs?: { name?: string }[] }>(namespace, `/runs?namespace=${encodeURIComponent(namespace)}`, signal),
    retry: false,
    staleTime: 60_000,
  });
  const runs = Array.isArray(archived.data) ? archived.data : (archived.data?.runs ?? []);
  return new Set([...(objects ?? []).map((e) => e.metadata.name), ...runs.map((run) => run.name ?? "")]);
}
