import { create, get, Refusal, remove } from "../../../kubernetes/client";
import { campaigns, experiments, nodeTemplates, scenarios, waveforms, type Kind, type KubernetesObject } from "../../../kubernetes/kinds";
import type { Written } from "../text/read";
import { at, contains, fieldsOf, wordOf } from "../text/values";

const configMaps: Kind<KubernetesObject> = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };

/** kinds that the page creates, those to which others refer first. */
const kinds: readonly Kind<KubernetesObject>[] = [configMaps, waveforms, nodeTemplates, scenarios, experiments, campaigns].map((kind) =>
  kind.kind === "Waveform" ? { ...kind, namespaced: false } : kind,
);

/** How the page reaches the cluster; tests have their own. */
export interface Cluster {
  create: (kind: Kind<KubernetesObject>, namespace: string | undefined, object: KubernetesObject, dryRun: boolean) => Promise<KubernetesObject>;
  get: (kind: Kind<KubernetesObject>, namespace: string | undefined, name: string) => Promise<KubernetesObject>;
  remove: (kind: Kind<KubernetesObject>, namespace: string | undefined, name: string, uid: string) => Promise<void>;
}

export const cluster: Cluster = {
  create: (kind, namespace, object, dryRun) => create(kind, namespace, object, { dryRun }),
  get: (kind, namespace, name) => get(kind, namespace, name),
  remove: (kind, namespace, name, uid) => remove(kind, namespace, name, uid),
};

interface Wanted {
  written: Written;
  kind: Kind<KubernetesObject>;
  namespace: string | undefined;
  object: KubernetesObject;
  /** present: an equal object is there already. */
  present: boolean;
}

/** Made is an object that was created. The API server may have given it its name. */
interface Made {
  each: Wanted;
  name: string;
  uid: string;
}

export interface Submitted {
  namespace: string;
  kind: string;
  name: string;
}

/**
 * submit creates the objects of a text: all of them, or none.
 * The API server first checks each without writing; after a refusal it removes those it has created.
 * After a lost answer nothing is removed that an experiment may use.
 */
export async function submit(objects: readonly Written[], main: Written | undefined, namespace: string, to: Cluster = cluster): Promise<Submitted> {
  const wanted = objects.map((written) => wantedOf(written, namespace)).sort((a, b) => rank(a) - rank(b));
  if (!main) throw new Refusal(0, "The text has no Experiment and no Campaign.");
  for (const each of wanted) each.present = await check(each, to);
  const made: Made[] = [];
  let { name } = main;
  for (const each of wanted.filter((w) => !w.present)) {
    try {
      const created = await to.create(each.kind, each.namespace, each.object, false);
      made.push({ each, name: created.metadata.name, uid: created.metadata.uid ?? "" });
      if (each.written === main) name = created.metadata.name;
    } catch (reason) {
      throw await failed(each, made, reason, to);
    }
  }
  return { namespace, kind: main.kind, name };
}

function rank(wanted: Wanted): number {
  return kinds.indexOf(wanted.kind);
}

function wantedOf(written: Written, namespace: string): Wanted {
  const kind = kinds.find((k) => k.kind === written.kind);
  if (!kind) throw new Refusal(0, `${written.kind || "An object without a kind"} ${written.name}: the console creates none of this kind. Create it by kubectl apply, and take it out of the text.`);
  const own = wordOf(at(written.object, ["metadata", "namespace"])) || namespace;
  const metadata = { ...fieldsOf(written.object.metadata), name: written.name, ...(kind.namespaced && { namespace: own }) };
  const object = { ...written.object, metadata } as KubernetesObject;
  return { written, kind, namespace: kind.namespaced ? own : undefined, object, present: false };
}

/** check an object by a dry run, and return whether an equal one is there already. */
async function check(wanted: Wanted, to: Cluster): Promise<boolean> {
  const { kind, namespace, object } = wanted;
  try {
    await to.create(kind, namespace, object, true);
    return false;
  } catch (reason) {
    if (!(reason instanceof Refusal) || reason.reason !== "AlreadyExists") throw reason;
  }
  const name = nameOf(wanted);
  if (kind.kind === "Experiment" || kind.kind === "Campaign") throw new Refusal(409, `${name} is in namespace ${namespace ?? ""} already, and a new run is a new object: give it another name.`);
  const there = await to.get(kind, namespace, object.metadata.name);
  const parts = ["spec", "data", "binaryData"] as const;
  if (parts.every((part) => contains((there as unknown as Record<string, unknown>)[part], (object as unknown as Record<string, unknown>)[part]))) return true;
  throw new Refusal(409, `${name} is there already with other contents. Give the one of this text another name, also where the experiment refers to it.`);
}

/** failed removes what was created, unless the last object may be there after all. It returns what to tell the user. */
async function failed(last: Wanted, made: readonly Made[], reason: unknown, to: Cluster): Promise<Refusal> {
  const status = reason instanceof Refusal ? reason.status : 0;
  const words = reason instanceof Refusal ? reason.message : "The reason is not known.";
  const isLost = status === 0 || status >= 500;
  if (!isLost || !(await mayBeThere(last, to))) return new Refusal(status, `${words} ${await undone(made, to)}`);
  const left = made.length > 0 ? ` Left as they are: ${made.map(wordsOf).join(", ")}.` : "";
  return new Refusal(status, `${words} ${nameOf(last)} may have been created all the same: look for it before you try again.${left}`);
}

async function mayBeThere({ kind, namespace, object }: Wanted, to: Cluster): Promise<boolean> {
  if (object.metadata.name === "") return true; // its name is not known
  try {
    await to.get(kind, namespace, object.metadata.name);
    return true;
  } catch (reason) {
    return !(reason instanceof Refusal && reason.status === 404);
  }
}

/** undone removes what was created, the last first, and says what is left. */
async function undone(made: readonly Made[], to: Cluster): Promise<string> {
  const left: string[] = [];
  for (const one of [...made].reverse()) {
    await to.remove(one.each.kind, one.each.namespace, one.name, one.uid).catch(() => left.push(wordsOf(one)));
  }
  return left.length > 0 ? `Left behind, as it could not be removed: ${left.join(", ")}.` : "Nothing was created.";
}

function wordsOf({ each, name }: Made): string {
  return `${each.kind.kind} ${name}`;
}

function nameOf({ kind, object: { metadata } }: Wanted): string {
  return `${kind.kind} ${metadata.name === "" && metadata.generateName ? `${metadata.generateName}…` : metadata.name}`;
}
