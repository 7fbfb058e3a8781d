import { isExact } from "../../components/exact";
import { Refusal } from "../../kubernetes/client";
import type { Scenario } from "../../types";
import { isPlan, platformsOf, type ConfigMap } from "./objects";
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
  if (![spec.propagation?.syntheticTerrain, spec.synthetic?.seed].every(isExact)) throw new Refusal(0, `It has a seed above ${Number.MAX_SAFE_INTEGER}, which a browser would round. Use kubectl edit.`);
  const text = files.find((file) => file.metadata.name === spec.source?.configMap)?.data?.[spec.source?.key ?? ""];
  const platforms = isPlan(spec) && text !== undefined ? platformsOf(text, spec.tracks?.named ?? []) : undefined;
  const { orderOfBattle, propagation, description = "" } = spec;
  const plan = platforms && { name: metadata.name, namespace: metadata.namespace ?? "", description, platforms, propagation, ...(orderOfBattle && { orderOfBattle }) };
  return { scenario, files, plan };
}
