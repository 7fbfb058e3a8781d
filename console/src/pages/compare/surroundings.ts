import type { Plan } from "../../archive/types";
import { bytes, digits } from "../../components/figures";
import { describeChange } from "../../components/radiochange";

/** Field has a value for each run. */
export interface Field {
  field: string;
  values: string[];
}

const absent = "–";

/** surroundingsOf a run: versions, hosts and images, each by a name that means the same in every run. */
export function surroundingsOf({ environment }: Plan): Map<string, string> {
  const found = new Map<string, string>();
  const set = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== "") found.set(name, value);
  };
  set("platform", environment?.platform.version);
  set("chart", environment?.platform.chart);
  set("operator's revision", environment?.platform.operator);
  set("Kubernetes", environment?.kubernetes);
  set("hosts", environment?.hosts?.map(({ name }) => name).join(", "));
  for (const host of environment?.hosts ?? []) {
    set(`${host.name}: kernel`, host.kernel);
    set(`${host.name}: operating system`, host.os);
    set(`${host.name}: processors`, host.cpus === undefined ? undefined : `${host.cpus} × ${host.cpuModel ?? "unknown"}`);
    set(`${host.name}: memory`, host.memoryBytes === undefined ? undefined : bytes(host.memoryBytes));
    set(`${host.name}: TCP congestion control`, host.tcpCongestionControl);
    set(`${host.name}: kubelet`, host.kubelet);
    set(`${host.name}: container runtime`, host.containerRuntime);
  }
  for (const [name, digests] of imagesOf(environment?.images ?? [])) set(name, [...digests].sort().join(", "));
  return found;
}

/** imagesOf the platform by container, and of nodes by app: nodes of one run have the same one of each. */
function imagesOf(images: NonNullable<NonNullable<Plan["environment"]>["images"]>): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { node, container, image, id } of images) {
    const name = `image of ${node === undefined ? "the platform's" : "nodes'"} ${container}`;
    const digest = `${image} ${id.slice(id.lastIndexOf("sha256:")).slice(0, 19)}`;
    found.set(name, (found.get(name) ?? new Set<string>()).add(digest));
  }
  return found;
}

/** differing are the fields in which not all runs agree. */
export function differing(runs: readonly Map<string, string>[]): Field[] {
  const names = new Set(runs.flatMap((run) => [...run.keys()]));
  return [...names].map((field) => ({ field, values: runs.map((run) => run.get(field) ?? absent) })).filter(({ values }) => new Set(values).size > 1);
}

/** withLiveChanges has changes by hand in words, once the records of all runs are read. */
export function withLiveChanges(fields: readonly Field[], plans: readonly Plan[]): Field[] {
  return fields.map((field) => (field.field === "liveChanges" && plans.length === field.values.length ? { field: "changes by hand", values: plans.map(liveChangesOf) } : field));
}

function liveChangesOf({ liveChanges }: Plan): string {
  const words = (liveChanges ?? []).map(({ atNanoseconds, changes }) => `at ${digits(atNanoseconds / 1e9)} s, ${(changes ?? []).map(describeChange).join(", ")}`);
  return words.join("; ") || absent;
}

/** ByValue has the runs that have a value. */
export interface ByValue {
  field: string;
  value: string;
  runs: string[];
}

/** byValue turns fields into a row for each value, for more runs than a table has room for. */
export function byValue(fields: readonly Field[], labels: readonly string[]): ByValue[] {
  return fields.flatMap(({ field, values }) => {
    const runs = new Map<string, string[]>();
    values.forEach((value, i) => runs.set(value, [...(runs.get(value) ?? []), labels[i] ?? ""]));
    return [...runs].map(([value, of]) => ({ field, value, runs: of }));
  });
}
