import { askJSON } from "../../kubernetes/client";
import type { components } from "../../types/console.gen";
import { classOf, type Measure } from "./scale";
import { hopsFrom, paired, type DirectedLink, type MapJammer, type MapLink, type MapNode } from "./scene";
import type { Terrain } from "./terrain";
import type { Track } from "./tracks";

/** A point of a track: seconds after T0, latitude, longitude, altitude. */
export type WirePoint = readonly number[];

// The types of the server's answers. They have to fit what the page reads.
type Answers = components["schemas"];

/** RunMapData is what the console's server says about a run (internal/console/mapdata). Times are seconds after T0. */
export interface RunMapData {
  t0?: string | null;
  /** durationSeconds of the run, if it ends by itself. */
  durationSeconds?: number | null;
  nodes: { name: string; group?: string; networks?: string[] | null; broker?: boolean; track?: WirePoint[] | null; reported?: WirePoint[] | null }[];
  /** links: whether the radios of the network report links. */
  networks: { name: string; model: string; links?: boolean }[];
  terrain?: Terrain | null;
  jammers?: { network: string; name: string; fromSeconds: number; toSeconds?: number | null; latitude?: number | null; longitude?: number | null; power?: string; rangeMetres?: number | null }[] | null;
  silences?: { network: string; node?: string | null; fromSeconds: number; toSeconds?: number | null }[] | null;
  happened?: Happening[] | null;
  /** missing says what the map lacks, and why. */
  missing?: string[] | null;
}

/** Something that was done to a network, or to some of its nodes. */
export interface Happening {
  atSeconds: number;
  network: string;
  /** nodes that it concerns; none for all of the network. */
  nodes?: string[] | null;
  what: string;
  change?: Answers["RadioChange"];
}

export interface RunLinks {
  links: { from: string; to: string; sinr?: number | null; delivered?: number | null; pathloss?: number | null }[];
  /** leftOut is the number of links that an answer had no room for. */
  leftOut?: number;
  /** hopsFrom is the node from which the hops are counted. */
  hopsFrom?: string;
  hops?: { to: string; hops: number }[];
  /** hopsByRoutes: the hops are those of the node's routes, else of the links. */
  hopsByRoutes?: boolean;
}

function runPath(namespace: string, uid: string): string {
  return `/console/v1/namespaces/${encodeURIComponent(namespace)}/runs/${encodeURIComponent(uid)}`;
}

export function readMap(namespace: string, uid: string, signal: AbortSignal): Promise<RunMapData> {
  return askJSON<Answers["Map"]>(`${runPath(namespace, uid)}/map`, { signal });
}

/** linksKey is where the cache has the links of a network at a time, or now, with the hops from a node. */
export function linksKey(namespace: string, uid: string, network: string, at: number | undefined, from: string | undefined) {
  return ["map", namespace, uid, "links", network, at ?? "now", from ?? ""] as const;
}

/** isOfNetwork reports whether links of one key are of the network of another, at whatever moment. */
export function isOfNetwork(key: readonly unknown[], other: readonly unknown[] | undefined): boolean {
  return other !== undefined && key.slice(0, -2).every((part, i) => other[i] === part);
}

/** readLinks of a network at a time; now without one. Hops are those from a node; without one the server chooses it. */
export function readLinks(namespace: string, uid: string, network: string, at: number | undefined, from: string | undefined, signal: AbortSignal): Promise<RunLinks> {
  const parameters = new URLSearchParams({ network, ...(at !== undefined && { at: String(at) }), ...(from !== undefined && { hopsFrom: from }) });
  return askJSON<Answers["Links"]>(`${runPath(namespace, uid)}/links?${parameters.toString()}`, { signal });
}

// APP-6: friendly land units present; signals for brokers, else a unit of no kind.
const unit = "10031000000000000000";
const signals = "10031000001110000000";

export function trackOf(points: readonly WirePoint[] | null | undefined): Track {
  return (points ?? []).map(([at = 0, latitude = 0, longitude = 0, altitude = 0]) => ({ at, latitude, longitude, altitude }));
}

/** nodesOf a map that are on a network; on any without one. */
export function nodesOf(data: RunMapData, network?: string): MapNode[] {
  return data.nodes
    .filter((node) => network === undefined || (node.networks ?? []).includes(network))
    .map(({ name, broker, track, reported }) => ({ name, symbol: broker ? signals : unit, track: trackOf(track), reported: trackOf(reported) }));
}

function holds({ fromSeconds, toSeconds }: { fromSeconds: number; toSeconds?: number | null }, at: number): boolean {
  return fromSeconds <= at && at < (toSeconds ?? Infinity);
}

/** jammersAt a time that disturb a network. Those without a place have the same pathloss to all nodes. */
export function jammersAt(data: RunMapData, network: string, at: number): MapJammer[] {
  const found: MapJammer[] = [];
  for (const jammer of data.jammers ?? []) {
    const { name, latitude, longitude, rangeMetres } = jammer;
    if (jammer.network !== network || !holds(jammer, at) || typeof latitude !== "number" || typeof longitude !== "number") continue;
    found.push({ name, place: { latitude, longitude }, ...(typeof rangeMetres === "number" && { rangeMetres }) });
  }
  return found;
}

/** silentAt a time are the nodes of a network that transmit nothing. */
export function silentAt(data: RunMapData, network: string, at: number): ReadonlySet<string> {
  const names = new Set<string>();
  for (const silence of data.silences ?? []) {
    if (silence.network !== network || !holds(silence, at)) continue;
    if (typeof silence.node === "string") names.add(silence.node);
    else for (const node of data.nodes) if ((node.networks ?? []).includes(network)) names.add(node.name);
  }
  return names;
}

/** valuesOf links by a measure; shares are in percent. */
export function valuesOf({ links }: RunLinks, measure: Measure): DirectedLink[] {
  return links.map(({ from, to, sinr, delivered }) => ({ from, to, value: measure === "sinr" ? (sinr ?? null) : typeof delivered === "number" ? 100 * delivered : null }));
}

/** linksOf a network. What its silent radios sent before is of no account. */
export function linksOf(links: RunLinks | undefined, measure: Measure, silent: ReadonlySet<string> = new Set()): MapLink[] {
  const values = links ? valuesOf(links, measure).map((link) => (silent.has(link.from) ? { ...link, value: null } : link)) : [];
  return paired(values, (value) => classOf(measure, value));
}

/** isRouted reports whether something sets the routes of a network. */
export function isRouted(networks: readonly { name: string; routing?: { protocol?: string } }[] | null | undefined, name: string): boolean {
  return (networks?.find((network) => network.name === name)?.routing?.protocol ?? "none") !== "none";
}

/** hopsOver the routes or links from a node; without one from the node that the server counts from. Without routing nobody relays. */
export function hopsOver(links: RunLinks | undefined, from: string | undefined, routed = true): ReadonlyMap<string, number> {
  if (!links) return new Map();
  if (from !== undefined && links.hopsByRoutes && links.hopsFrom !== from) return new Map(); // its routes are being read
  const hops = from !== undefined && !links.hopsByRoutes ? [...hopsFrom(links.links, from)] : (links.hops ?? []).map(({ to, hops }) => [to, hops] as const);
  return new Map(hops.filter(([, count]) => routed || links.hopsByRoutes || count <= 1));
}

/** measureFrom an address, or that of a network's model: a link without radios has no SINR. */
export function measureFrom(choice: string | undefined, model: string | undefined): Measure {
  if (choice === "sinr" || choice === "delivered") return choice;
  return model === "link" ? "delivered" : "sinr";
}

/** momentFrom an address, in seconds after T0; undefined if it has none. */
export function momentFrom(choice: string | undefined): number | undefined {
  return choice !== undefined && /^\d+$/.test(choice) ? Number(choice) : undefined;
}
