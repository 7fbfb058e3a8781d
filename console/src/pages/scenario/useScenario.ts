import { useMutation, useQuery } from "@tanstack/react-query";
import { create, get, patch, Refusal } from "../../kubernetes/client";
import { scenarios } from "../../kubernetes/kinds";
import type { Scenario } from "../../types";
import { configMaps, configMapsOf, isPlan, objectsOf, platformsOf, type ConfigMap } from "./objects";
import type { Plan } from "./plan";

/** Loaded is a Scenario of the cluster with the files that it reads. */
export interface Loaded {
  scenario: Scenario;
  files: ConfigMap[];
  /** plan, if the editor can edit its movement. */
  plan: Plan | undefined;
}

/** loadedOf a Scenario and its files. */
export function loadedOf(scenario: Scenario, files: ConfigMap[]): Loaded {
  const { spec, metadata } = scenario;
  const text = files.find((file) => file.metadata.name === spec.source?.configMap)?.data?.[spec.source?.key ?? ""];
  const platforms = isPlan(spec) && text !== undefined ? platformsOf(text, spec.tracks?.named ?? []) : undefined;
  const plan = platforms && { name: metadata.name, namespace: metadata.namespace ?? "", description: spec.description ?? "", platforms, propagation: spec.propagation };
  return { scenario, files, plan };
}

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

// Fields that a Scenario of the editor may have had before; a patch removes what is null.
const optional = { description: null, sources: null, compiled: null, synthetic: null, antennaProfiles: null, tracks: null, propagation: null };
const ofPropagation = { antennaHeight: null, exponent: null, shadowing: null, shadowingDistance: null, syntheticTerrain: null, terrain: null };

/** changeTo a spec is the patch that makes a Scenario have it and nothing else. */
export function changeTo(spec: Scenario["spec"]): unknown {
  return { spec: { ...optional, ...spec, ...(spec.propagation && { propagation: { ...ofPropagation, ...spec.propagation } }) } };
}

/** useSaving saves a plan. Objects of its name are replaced only if they were loaded. */
export function useSaving(onSaved: () => void) {
  return useMutation({
    mutationFn: async ({ plan, replaces }: { plan: Plan; replaces: boolean }) => {
      const { configMap, scenario } = objectsOf(plan);
      const { namespace } = plan;
      if (!replaces) {
        await create(scenarios, namespace, scenario, { dryRun: true });
        await create(configMaps, namespace, configMap, { dryRun: true });
      }
      await createOrPatch(namespace, configMap, replaces);
      return replaces ? patch(scenarios, namespace, plan.name, changeTo(scenario.spec)) : create(scenarios, namespace, scenario);
    },
    onSuccess: onSaved,
  });
}

async function createOrPatch(namespace: string, configMap: ConfigMap, replaces: boolean): Promise<void> {
  try {
    if (replaces) await patch(configMaps, namespace, configMap.metadata.name, { data: configMap.data });
    else await create(configMaps, namespace, configMap);
  } catch (reason) {
    // A Scenario whose file has another name gets one of the editor's.
    if (!replaces || !(reason instanceof Refusal) || reason.status !== 404) throw reason;
    await create(configMaps, namespace, configMap);
  }
}
