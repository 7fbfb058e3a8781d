import type { AgentState, RunState } from "../../archive/types";
import type { SortBy } from "../../components/sorting";
import { expandNodes, type ExpandedNode } from "../../components/topology/expand";
import type { Pod } from "../../kubernetes/kinds";
import type { Experiment } from "../../types";

/** NodeRow is what is known of a node of an experiment. */
export interface NodeRow {
  name: string;
  group: string;
  nem: number;
  host: string;
  /** Addresses with their networks, such as wan 198.18.0.1. */
  addresses: string[];
  apps: string[];
  state: string;
  /** isBad is set if somebody should look at the node. */
  isBad: boolean;
  restarts: number;
  /** lastWords are the last lines of an app that failed, or why the node is not up. */
  lastWords: string;
  /** reportedAt is when its agents last reported. */
  reportedAt: string | undefined;
}

/** NodePod is a pod as far as the table reads it. */
export type NodePod = Pod & {
  metadata: { deletionTimestamp?: string };
  status?: {
    reason?: string;
    message?: string;
    containerStatuses?: { name: string; ready: boolean; restartCount: number; state?: { waiting?: { reason?: string; message?: string }; terminated?: { reason?: string; message?: string } } }[];
  };
};

/** podLabel names the node in the labels of its pod. */
const podLabel = "vignette.dev/node";

/** nodeRows of an experiment: its spec, completed by what the archive and the cluster know. */
export function nodeRows(e: Experiment, state: RunState | undefined, pods: readonly Pod[]): NodeRow[] {
  const agents = new Map<string, AgentState[]>();
  for (const agent of state?.agents ?? []) agents.set(agent.node, [...(agents.get(agent.node) ?? []), agent]);
  const podOf = new Map(pods.map((pod) => [pod.metadata.labels?.[podLabel] ?? "", pod as NodePod]));
  const planned = new Map((state?.plan.nodes ?? []).map((node) => [node.name, node]));
  const hosts = new Map((state?.plan.environment?.hosts ?? []).flatMap((host) => (host.nodes ?? []).map((node) => [node, host.name] as const)));
  return expandNodes(e.spec).map((node) => {
    const pod = podOf.get(node.name);
    const plan = planned.get(node.name);
    const reports = agents.get(node.name) ?? [];
    return {
      ...common(node),
      nem: plan?.nem ?? node.nem,
      addresses: node.networks.map((network) => `${network} ${plan?.addresses?.[network] ?? ""}`.trim()),
      host: pod?.spec?.nodeName ?? hosts.get(node.name) ?? "",
      ...conditionOf(reports, pod, state, node.name),
      restarts: reports.reduce((sum, agent) => sum + agent.restarts, 0),
      reportedAt: reports.map((agent) => agent.reportedAt).sort().at(-1),
    };
  });
}

function common({ name, group, apps }: ExpandedNode) {
  return { name, group, apps };
}

function conditionOf(reports: AgentState[], pod: NodePod | undefined, state: RunState | undefined, node: string): Pick<NodeRow, "state" | "isBad" | "lastWords"> {
  const failed = reports.find((agent) => agent.phase === "failed");
  if (failed) return { state: "failed", isBad: true, lastWords: failed.message ?? failed.reason ?? "" };
  const incident = state?.incidents?.findLast((one) => one.node === node);
  if (incident && incident.toSeconds === undefined) return { state: incident.what, isBad: true, lastWords: incident.reason };
  const waiting = waitingOf(pod);
  if (waiting) return waiting;
  const said = reports.map((agent) => agent.message ?? "").find((message) => message !== "");
  return { state: phaseOf(reports, pod), isBad: false, lastWords: said ?? incident?.reason ?? "" };
}

function waitingOf(pod: NodePod | undefined): Pick<NodeRow, "state" | "isBad" | "lastWords"> | undefined {
  if (!pod) return undefined;
  if (pod.status?.phase === "Failed") return { state: pod.status.reason ?? "Failed", isBad: true, lastWords: pod.status.message ?? "" };
  for (const { state } of pod.status?.containerStatuses ?? []) {
    const reason = state?.waiting?.reason;
    if (reason !== undefined) {
      const usual = reason === "ContainerCreating" || reason === "PodInitializing";
      return { state: reason, isBad: !usual, lastWords: state?.waiting?.message ?? "" };
    }
  }
  return undefined;
}

// The least advanced app says how far the node is.
const order: AgentState["phase"][] = ["ready", "running", "stopped", "done"];

function phaseOf(reports: AgentState[], pod: NodePod | undefined): string {
  const phases = [...new Set(reports.map((agent) => agent.phase))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  if (phases.length > 0) return phases.join(", ");
  return pod?.status?.phase ?? "";
}

/** The columns by which the table can be sorted. */
export const columns = ["name", "group", "nem", "host", "state", "restarts"] as const;
export type Column = (typeof columns)[number];

export interface Order {
  column: Column;
  descending: boolean;
}

/** orderOf a sorting; that of the NEM ids if there is no such column. */
export function orderOf(sort: SortBy | undefined): Order {
  const column = columns.find((each) => each === sort?.id);
  return column && sort ? { column, descending: sort.descending } : { column: "nem", descending: false };
}

const collator = new Intl.Collator("en", { numeric: true });

/** arrange filters rows by words, each of which some cell must have, and sorts them. */
export function arrange(rows: readonly NodeRow[], words: string, { column, descending }: Order): NodeRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const text = [row.name, row.group, String(row.nem), row.host, row.state, row.lastWords, ...row.addresses, ...row.apps].join("\n").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const sign = descending ? -1 : 1;
  return found.sort((a, b) => sign * collator.compare(String(a[column]), String(b[column])) || collator.compare(a.name, b.name));
}
