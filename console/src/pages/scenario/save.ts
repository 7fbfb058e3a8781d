import { create, get, patch, Refusal, remove } from "../../kubernetes/client";
import { scenarios, type Kind, type KubernetesObject } from "../../kubernetes/kinds";
import type { Scenario } from "../../types";
import { configMaps, objectsOf, type ConfigMap } from "./objects";
import type { Plan } from "./plan";
import type { Loaded } from "./loaded";

/** How saving reaches the cluster; tests have their own. */
export interface Cluster {
  create: (kind: Kind<KubernetesObject>, namespace: string, object: KubernetesObject, dryRun: boolean) => Promise<KubernetesObject>;
  get: (namespace: string, name: string) => Promise<ConfigMap>;
  patch: (kind: Kind<KubernetesObject>, namespace: string, name: string, change: unknown, dryRun: boolean) => Promise<KubernetesObject>;
  remove: (namespace: string, name: string, uid: string) => Promise<void>;
}

const cluster: Cluster = {
  create: (kind, namespace, object, dryRun) => create(kind, namespace, object, { dryRun }),
  get: (namespace, name) => get(configMaps, namespace, name),
  patch: (kind, namespace, name, change, dryRun) => patch(kind, namespace, name, change, { dryRun }),
  remove: (namespace, name, uid) => remove(configMaps, namespace, name, uid),
};

// Fields that a Scenario of the editor may have had before; a patch removes what is null.
const optional = { description: null, sources: null, compiled: null, synthetic: null, antennaProfiles: null, tracks: null, propagation: null, orderOfBattle: null };
const ofPropagation = { antennaHeight: null, exponent: null, shadowing: null, shadowingDistance: null, syntheticTerrain: null, terrain: null };

/** changeTo a spec is the patch that makes a Scenario have it and nothing else. */
export function changeTo(spec: Scenario["spec"]): { spec: unknown } {
  return { spec: { ...optional, ...spec, ...(spec.propagation && { propagation: { ...ofPropagation, ...spec.propagation } }) } };
}

/** Step writes one object, or only checks it. undo takes back what it wrote. */
interface Step {
  write: (dryRun: boolean) => Promise<KubernetesObject>;
  undo: (written: KubernetesObject) => Promise<unknown>;
}

/**
 * save a plan: its file and its Scenario, or none of them. Both are checked before one is written.
 * The Scenario that was loaded is replaced, if nobody has changed it since. Nothing else is.
 */
export async function save(plan: Plan, replaced: Loaded | undefined, to: Cluster = cluster): Promise<void> {
  const { configMap, scenario } = objectsOf(plan);
  const own = replaced?.files.find((file) => file.metadata.name === configMap.metadata.name);
  const file = own ? replacing(own, configMap, to) : await creating(plan, configMap, to);
  const version = replaced?.scenario.metadata.resourceVersion;
  const writeScenario = (dryRun: boolean) =>
    replaced
      ? patched(scenarios, scenario, { ...changeTo(scenario.spec), ...(version !== undefined && { metadata: { resourceVersion: version } }) }, dryRun, to)
      : to.create(scenarios, plan.namespace, scenario, dryRun);
  await writeScenario(true);
  await file?.write(true);
  const written = await file?.write(false);
  try {
    await writeScenario(false);
  } catch (reason) {
    throw file && written ? await undone(file, written, configMap.metadata.name, reason) : reason;
  }
}

function replacing(before: ConfigMap, configMap: ConfigMap, to: Cluster): Step {
  const { name, namespace = "", resourceVersion } = before.metadata;
  const added = Object.keys(configMap.data ?? {}).filter((key) => before.data?.[key] === undefined);
  return {
    write: (dryRun) => patched(configMaps, configMap, { data: configMap.data, ...(resourceVersion !== undefined && { metadata: { resourceVersion } }) }, dryRun, to),
    undo: () => to.patch(configMaps, namespace, name, { data: { ...Object.fromEntries(added.map((key) => [key, null])), ...before.data } }, false),
  };
}

/** creating a plan's file; undefined if an equal one is there. One of the name that the Scenario does not read is not overwritten. */
async function creating({ namespace }: Plan, configMap: ConfigMap, to: Cluster): Promise<Step | undefined> {
  const { name } = configMap.metadata;
  try {
    await to.create(configMaps, namespace, configMap, true);
  } catch (reason) {
    if (!(reason instanceof Refusal) || reason.reason !== "AlreadyExists") throw reason;
    const there = await to.get(namespace, name);
    if (Object.entries(configMap.data ?? {}).every(([key, text]) => there.data?.[key] === text)) return undefined;
    throw new Refusal(409, `ConfigMap ${name} is in namespace ${namespace} already, with other contents. Save the scenario by another name, or delete the ConfigMap first.`);
  }
  return {
    write: (dryRun) => to.create(configMaps, namespace, configMap, dryRun),
    undo: (written) => to.remove(namespace, name, written.metadata.uid ?? ""),
  };
}

async function patched(kind: Kind<KubernetesObject>, { metadata: { name, namespace = "" } }: KubernetesObject, change: unknown, dryRun: boolean, to: Cluster): Promise<KubernetesObject> {
  try {
    return await to.patch(kind, namespace, name, change, dryRun);
  } catch (reason) {
    if (!(reason instanceof Refusal) || reason.reason !== "Conflict") throw reason;
    throw new Refusal(409, `${kind.kind} ${name} was changed since it was opened here. Copy the YAML, open the scenario again, or save by another name.`);
  }
}

async function undone(file: Step, written: KubernetesObject, name: string, reason: unknown): Promise<unknown> {
  const left = await file.undo(written).then(
    () => false,
    () => true,
  );
  if (!left || !(reason instanceof Refusal)) return reason;
  return new Refusal(reason.status, `${reason.message} ConfigMap ${name} was written and could not be put back.`, reason.reason, reason.causes);
}
