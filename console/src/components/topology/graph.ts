import type { Plan } from "../../archive/types";
import type { Experiment } from "../../types";
import { forwarders } from "../brokers";
import { modelOf } from "../models";
import { expandNodes, type ExpandedNode } from "./expand";

type Spec = Experiment["spec"];
type App = Spec["apps"][number];

/** Topology of an experiment: groups of nodes, networks, and the ways of messages. */
export interface Topology {
  groups: Group[];
  networks: Network[];
  attachments: Attachment[];
  passages: Passage[];
}

export interface Group {
  name: string;
  members: Member[];
}

export interface Member {
  name: string;
  apps: string[];
  /** brokers among the apps. */
  brokers: string[];
  networks: string[];
}

export interface Network {
  name: string;
  subnet: string;
  /** model that carries its frames, such as a waveform's name or the word link. */
  model: string;
}

/** Attachment joins a group and a network. Not all of its members need to be on it. */
export interface Attachment {
  group: string;
  network: string;
  members: number;
  of: number;
}

/** Passage is a way of messages from one node to another. */
export interface Passage {
  /** client: to the broker of an app. broker: from one broker to another. */
  kind: "client" | "broker";
  from: string;
  to: string;
  label: string;
}

/** isBroker reports whether an app passes messages on by its kind. An image of one's own may do so too. */
export function isBroker(app: App): boolean {
  return forwarders.some((kind) => app[kind] !== undefined);
}

/** topologyOf a spec, completed by the plan of a run, which knows who uses which broker. */
export function topologyOf(spec: Spec, plan?: Plan): Topology {
  const nodes = expandNodes(spec);
  const brokers = new Set(spec.apps.filter(isBroker).map((app) => app.name));
  const groups = new Map<string, Group>();
  for (const node of nodes) {
    const group = groups.get(node.group) ?? { name: node.group, members: [] };
    group.members.push(memberOf(node, brokers));
    groups.set(node.group, group);
  }
  const networks = spec.networks.map((network) => ({ name: network.name, subnet: network.subnet, model: waveformOf(network) }));
  return {
    groups: [...groups.values()],
    networks,
    attachments: attachmentsOf([...groups.values()], networks),
    passages: plan ? passagesOf(plan, new Set(networks.map((n) => n.name))) : [],
  };
}

function memberOf(node: ExpandedNode, brokers: Set<string>): Member {
  return { name: node.name, apps: node.apps, brokers: node.apps.filter((app) => brokers.has(app)), networks: node.networks };
}

function waveformOf(network: Spec["networks"][number]): string {
  if (network.waveform) return network.waveform;
  return modelOf(network) ?? "";
}

function attachmentsOf(groups: Group[], networks: Network[]): Attachment[] {
  return groups.flatMap((group) =>
    networks.flatMap((network) => {
      const members = group.members.filter((member) => member.networks.includes(network.name)).length;
      return members === 0 ? [] : [{ group: group.name, network: network.name, members, of: group.members.length }];
    }),
  );
}

function passagesOf(plan: Plan, networks: Set<string>): Passage[] {
  const found = new Map<string, Passage>();
  const add = (kind: Passage["kind"], from: string, to: string, label: string) => {
    if (from === to) return;
    const key = `${kind} ${from} ${to}`;
    const before = found.get(key);
    if (!before) found.set(key, { kind, from, to, label });
    else if (!before.label.split(", ").includes(label)) before.label += `, ${label}`;
  };
  for (const passage of plan.passages ?? []) add("broker", nodeOf(passage.from), nodeOf(passage.to), appsOf(passage.from, passage.to));
  const known = new Set((plan.nodes ?? []).map((node) => node.name));
  for (const node of plan.nodes ?? []) {
    for (const app of node.apps ?? []) {
      // Where there is no broker, a network stands in its place.
      for (const broker of app.brokers ?? []) if (!networks.has(broker) && known.has(nodeOf(broker))) add("client", node.name, nodeOf(broker), app.name);
    }
  }
  return [...found.values()];
}

function nodeOf(broker: string): string {
  return broker.split("/")[0] ?? broker;
}

function appsOf(from: string, to: string): string {
  const [a, b] = [from, to].map((name) => name.slice(name.indexOf("/") + 1));
  return a === b ? (a ?? "") : `${a ?? ""} to ${b ?? ""}`;
}
