import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { askJSON } from "../kubernetes/client";
import type { components } from "../types/console.gen";

/** Judgement of a text is that of `vignette validate`. */
export type Judgement = components["schemas"]["Summary"];

/** post a text to the console's server. */
export function post<T>(path: string, namespace: string, text: string, signal: AbortSignal): Promise<T> {
  const query = namespace === "" ? "" : `?${new URLSearchParams({ namespace }).toString()}`;
  return askJSON<T>(`/console/v1/${path}${query}`, { method: "POST", body: text, signal, headers: { "content-type": "application/yaml" } });
}

const pauseMilliseconds = 400;

/** useJudgement of a text, soon after it has changed; fresh is set if it is that of the present text. */
export function useJudgement(text: string, namespace: string): { judgement: Judgement | undefined; error: Error | null; fresh: boolean } {
  const [settled] = useDebouncedValue(text, pauseMilliseconds);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ["validate", settled, namespace],
    queryFn: ({ signal }) => post<Judgement>("validate", namespace, settled, signal),
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    staleTime: 60_000,
  });
  return { judgement: data, error, fresh: settled === text && !isPlaceholderData && data !== undefined };
}
