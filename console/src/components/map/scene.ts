import type { Place, Point } from "./projection";
import type { Terrain } from "./terrain";
import type { Track } from "./tracks";

/** A node, or a platform, that the map shows. */
export interface MapNode {
  name: string;
  /** track by time; a node that stands has one point. */
  track: Track;
  /** reported positions of the node, as others have received them; each holds until the next. */
  reported?: Track;
  /** symbol is its APP-6 identification code. */
  symbol: string;
}

/** A link in both directions between two nodes. */
export interface MapLink {
  from: string;
  to: string;
  /** linkClass of the worse direction, as in scale.ts. */
  linkClass: number;
  /** forward and backward values; null if that direction carries nothing. */
  forward: number | null;
  backward: number | null;
}

export interface MapJammer {
  name: string;
  place: Place;
  /** rangeMetres within which it disturbs; absent if it is not known. */
  rangeMetres?: number;
}

/** A point that can be dragged, such as a waypoint. */
export interface Handle {
  id: string;
  place: Place;
  label: string;
  selected: boolean;
}

/** Scene is all that a map shows. */
export interface Scene {
  nodes: readonly MapNode[];
  links: readonly MapLink[];
  jammers: readonly MapJammer[];
  handles: readonly Handle[];
  terrain: Terrain | undefined;
  /** silent nodes transmit nothing. */
  silent: ReadonlySet<string>;
  /** hops from the selected node, by name. */
  hops: ReadonlyMap<string, number>;
  /** isDirect is set where hops over others do not count, as the network has no routing. */
  isDirect?: boolean;
  selected: string | undefined;
  /** inCircle is set where no node has a position: the places mean nothing. */
  inCircle?: boolean;
  /** home is shown where there is no node. */
  home?: Place;
}

export const emptyScene: Scene = { nodes: [], links: [], jammers: [], handles: [], terrain: undefined, silent: new Set(), hops: new Map(), selected: undefined };

/** A value of a link in one direction. */
export interface DirectedLink {
  from: string;
  to: string;
  value: number | null;
}

/** paired joins both directions of each link. The class is that of the worse direction; it is not known where one is not. */
export function paired(links: readonly DirectedLink[], classOf: (value: number | null) => number): MapLink[] {
  const pairs = new Map<string, MapLink>();
  for (const { from, to, value } of links) {
    const forwards = from < to;
    const key = forwards ? `${from}\n${to}` : `${to}\n${from}`;
    const pair = pairs.get(key) ?? { from: forwards ? from : to, to: forwards ? to : from, linkClass: -1, forward: null, backward: null };
    if (forwards) pair.forward = value;
    else pair.backward = value;
    pairs.set(key, pair);
  }
  for (const pair of pairs.values()) {
    pair.linkClass = Math.min(classOf(pair.forward), classOf(pair.backward));
  }
  return [...pairs.values()];
}

/** drawn is the part of the links that a map has room for: those of the selected node, then the best. */
export function drawn(links: readonly MapLink[], selected: string | undefined, most = 2000): readonly MapLink[] {
  if (links.length <= most) return links;
  const own = (link: MapLink) => (link.from === selected || link.to === selected ? 1 : 0);
  return [...links].sort((a, b) => own(b) - own(a) || b.linkClass - a.linkClass).slice(0, most);
}

/** hopsFrom a node to each that it reaches over the links, by the shortest way. */
export function hopsFrom(links: readonly { from: string; to: string }[], start: string): Map<string, number> {
  const next = new Map<string, string[]>();
  for (const { from, to } of links) {
    const receivers = next.get(from);
    if (receivers) receivers.push(to);
    else next.set(from, [to]);
  }
  const hops = new Map([[start, 0]]);
  const queue = [start];
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    for (const to of next.get(name) ?? []) {
      if (hops.has(to)) continue;
      hops.set(to, (hops.get(name) ?? 0) + 1);
      queue.push(to);
    }
  }
  return hops;
}

/** hasRoomForSymbols reports whether symbols of a size would mostly not cover each other. */
export function hasRoomForSymbols(points: readonly (Point | undefined)[], width: number, height: number, size = 34): boolean {
  const seen = points.filter((p) => p !== undefined && p.x >= 0 && p.y >= 0 && p.x <= width && p.y <= height);
  if (seen.length > 120) return false;
  const cells = new Set(seen.map((p) => `${Math.floor((p?.x ?? 0) / size)},${Math.floor((p?.y ?? 0) / size)}`));
  return cells.size >= 0.6 * seen.length;
}
