import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { get } from "../../kubernetes/client";
import { scenarios } from "../../kubernetes/kinds";
import { loadedOf, type Loaded } from "./loaded";
import { configMaps, configMapsOf } from "./objects";
import type { Plan } from "./plan";
import { save } from "./save";

/** useScenario reads a Scenario once: what is edited must not change under the hand. */
export function useScenario(namespace: string, name: string | undefined) {
  return useQuery({
    queryKey: ["scenario to edit", namespace, name],
    queryFn: async () => {
      const scenario = await get(scenarios, namespace, name ?? "");
      const files = await Promise.all(configMapsOf(scenario.spec).map((file) => get(configMaps, namespace, file)));
      return loadedOf(scenario, files);
    },
    enabled: name !== undefined,
    staleTime: Infinity,
    gcTime: 0,
  });
}

/** useSaving saves a plan, and tells which one: it may have been edited meanwhile. Only the Scenario that was loaded is replaced, and it is read again then. */
export function useSaving(onSaved: (saved: Plan) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ plan, replaced }: { plan: Plan; replaced: Loaded | undefined }) => save(plan, replaced),
    onSuccess: async (_, { plan }) => {
      onSaved(plan);
      await queries.invalidateQueries({ queryKey: ["scenario to edit", plan.namespace, plan.name] });
    },
  });
}
