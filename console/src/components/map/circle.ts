import type { MapNode } from "./scene";

// On the equator a degree has about the same length in both directions.
const radiusDegrees = 0.05;

/** inCircle gives nodes without positions places on a circle, in their order, the first one at the left. */
export function inCircle(nodes: readonly MapNode[]): MapNode[] {
  return nodes.map((node, index) => {
    const angle = Math.PI - (2 * Math.PI * index) / nodes.length;
    return { ...node, reported: [], track: [{ at: 0, latitude: radiusDegrees * Math.sin(angle), longitude: radiusDegrees * Math.cos(angle) }] };
  });
}

/** isNowhere reports whether there are nodes, and none of them has a position at any time. */
export function isNowhere(nodes: readonly MapNode[]): boolean {
  return nodes.length > 0 && nodes.every(({ track }) => track.length === 0);
}
