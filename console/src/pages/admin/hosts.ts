import type { Host } from "../../components/capacity/capacity";
import type { Kind, KubernetesObject, Pod } from "../../kubernetes/kinds";

/** KubernetesNode is a host: a machine of the cluster, as far as the console reads it. */
export interface KubernetesNode extends KubernetesObject {
  spec?: { unschedulable?: boolean };
  status?: {
    conditions?: { type: string; status: string; message?: string }[];
    nodeInfo?: { kernelVersion?: string; kubeletVersion?: string };
  };
}

export const kubernetesNodes: Kind<KubernetesNode> = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

/** platformPods selects the pods of the platform in its namespace. */
export const platformPods = "app.kubernetes.io/part-of=vignette";

/** Lateness of the emulation of a run, so far. */
export interface Lateness {
  /** host names that have nodes of the run. */
  hosts: readonly string[];
  lateReleases: number;
  slotsMissed: number;
  worstSeconds: number;
}

/** HostRow is what the page shows of a host. */
export interface HostRow {
  name: string;
  /** state in words: takes pods, or why not. */
  state: string;
  isBad: boolean;
  capacity: Host | undefined;
  versions: string;
  radiod: string;
  radiodIsBad: boolean;
  /** nodes of experiments that run there; undefined until they are known. */
  nodes: number | undefined;
  lateness: string;
}

/** hostRows joins what is known of each host. The nodes of experiments may not be known yet. */
export function hostRows(hosts: readonly KubernetesNode[], platform: readonly Pod[], nodes: readonly Pod[] | undefined, capacity: readonly Host[], runs: readonly Lateness[]): HostRow[] {
  return hosts.map((host) => {
    const name = host.metadata.name;
    const here = capacity.find((each) => each.name === name);
    const state = stateOf(host, here);
    const running = nodes?.filter((pod) => pod.spec?.nodeName === name && pod.status?.phase === "Running").length;
    const radiod = radiodOf(platform.filter((pod) => pod.spec?.nodeName === name), state === takesPods || (running ?? 0) > 0);
    return {
      name,
      state,
      isBad: ![takesPods, keptFree, runsWindows].includes(state),
      capacity: here,
      versions: [host.status?.nodeInfo?.kubeletVersion, host.status?.nodeInfo?.kernelVersion].filter(Boolean).join(", Linux "),
      radiod: radiod.text,
      radiodIsBad: radiod.isBad,
      nodes: running,
      lateness: latenessText(runs.filter((run) => run.hosts.includes(name)), running),
    };
  });
}

const takesPods = "takes pods";
const keptFree = "kept free of experiments";
const runsWindows = "runs Windows";

function stateOf(host: KubernetesNode, capacity: Host | undefined): string {
  const ready = host.status?.conditions?.find((condition) => condition.type === "Ready");
  if (ready?.status !== "True") return `not ready: ${ready?.message ?? "it has not reported"}`;
  if (host.spec?.unschedulable) return "cordoned";
  if (host.metadata.labels?.["vignette.dev/experiments"] === "false") return keptFree;
  if (host.metadata.labels?.["kubernetes.io/os"] === "windows") return runsWindows;
  return capacity?.usable === false ? "tainted" : takesPods;
}

/** radiodOf a host, which needs one where nodes run or may run. */
function radiodOf(pods: readonly Pod[], isNeeded: boolean): { text: string; isBad: boolean } {
  const radiod = pods.find((pod) => pod.metadata.labels?.["app.kubernetes.io/name"] === "vignette-radiod");
  if (!radiod) return { text: "no radiod", isBad: isNeeded };
  const containers = radiod.status?.containerStatuses ?? [];
  const ready = containers.length > 0 && containers.every((container) => container.ready);
  const restarts = containers.reduce((sum, container) => sum + container.restartCount, 0);
  const version = radiod.metadata.labels?.["app.kubernetes.io/version"];
  const parts = [ready ? "ready" : `not ready (${radiod.status?.phase ?? "Unknown"})`, ...(version ? [version] : []), `${restarts} ${restarts === 1 ? "restart" : "restarts"}`];
  return { text: parts.join(", "), isBad: !ready };
}

/** latenessText of those runs of a host that are known, and the number of nodes there. */
export function latenessText(runs: readonly Lateness[], nodes: number | undefined): string {
  if (runs.length === 0) return nodes === 0 ? "nothing runs" : "not known";
  const late = runs.reduce((sum, run) => sum + run.lateReleases, 0);
  const missed = runs.reduce((sum, run) => sum + run.slotsMissed, 0);
  const worst = Math.max(...runs.map((run) => run.worstSeconds));
  if (late === 0 && missed === 0) return "no frame late";
  const slots = missed > 0 ? `, ${missed} ${missed === 1 ? "slot" : "slots"} missed` : "";
  return `${late} ${late === 1 ? "frame" : "frames"} late${slots}, worst ${(1000 * worst).toFixed(1)} ms`;
}
