import type { ElkNode } from "elkjs/lib/elk-api.js";
import type { Topology } from "./graph";

/** sizes of what is drawn, in pixels. */
export const sizes = { member: { width: 132, height: 44 }, network: { width: 168, height: 56 }, title: 28, padding: 12, gap: 8 } as const;

/** Place of an element: of members within their group, of others on the whole. */
export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Layout = Map<string, Place>;

/** Ids of elements, which no two kinds share. */
export const idOf = {
  group: (name: string) => `group ${name}`,
  member: (name: string) => `node ${name}`,
  network: (name: string) => `network ${name}`,
};

/** toElk describes a topology for the layout: groups are boxes of nodes, and lie about their networks. */
export function toElk(topology: Topology): ElkNode {
  const groupOf = new Map(topology.groups.flatMap((group) => group.members.map((member) => [member.name, group.name] as const)));
  const edges = topology.attachments.map((a) => ({ id: `${a.group} on ${a.network}`, sources: [idOf.group(a.group)], targets: [idOf.network(a.network)] }));
  const between = new Set<string>();
  for (const passage of topology.passages) {
    const [from, to] = [groupOf.get(passage.from), groupOf.get(passage.to)];
    if (from === undefined || to === undefined || from === to || between.has(`${from} ${to}`)) continue;
    between.add(`${from} ${to}`);
    edges.push({ id: `${from} to ${to}`, sources: [idOf.group(from)], targets: [idOf.group(to)] });
  }
  const boxes = [
    ...topology.groups.map((group) => boxOf(group.name, group.members.map((member) => member.name))),
    ...topology.networks.map((network) => ({ id: idOf.network(network.name), ...sizes.network })),
  ];
  return graphOf(boxes, edges);
}

/** graphOf boxes, of which those that are joined lie near each other. */
export function graphOf(boxes: ElkNode[], edges: { id: string; sources: string[]; targets: string[] }[], length = 260): ElkNode {
  return { id: "all", layoutOptions: { "elk.algorithm": "stress", "elk.stress.desiredEdgeLength": String(length), "elk.spacing.nodeNode": "40" }, children: boxes, edges };
}

/** placesOf the boxes that were laid out. Boxes that overlap are moved apart. */
export function placesOf(root: ElkNode): Layout {
  const layout: Layout = new Map();
  for (const child of root.children ?? []) layout.set(child.id, { x: child.x ?? 0, y: child.y ?? 0, width: child.width ?? 0, height: child.height ?? 0 });
  separate([...layout.values()], 32);
  return layout;
}

/** boxOf a group has its members in rows, in order, about as wide as high. */
function boxOf(name: string, members: string[]): ElkNode {
  const { member, padding, title } = sizes;
  const columns = columnsOf(members.length);
  const rows = Math.ceil(members.length / columns);
  return {
    id: idOf.group(name),
    width: columns * (member.width + sizes.gap) - sizes.gap + 2 * padding,
    height: rows * (member.height + sizes.gap) - sizes.gap + title + padding,
  };
}

function columnsOf(members: number): number {
  const { member, gap } = sizes;
  return Math.max(1, Math.round(Math.sqrt((1.4 * members * (member.height + gap)) / (member.width + gap))));
}

/** fromElk reads the places, and adds those of members. */
export function fromElk(root: ElkNode, topology: Topology): Layout {
  const layout = placesOf(root);
  for (const group of topology.groups) {
    const columns = columnsOf(group.members.length);
    group.members.forEach((member, i) => {
      layout.set(idOf.member(member.name), {
        x: sizes.padding + (i % columns) * (sizes.member.width + sizes.gap),
        y: sizes.title + Math.floor(i / columns) * (sizes.member.height + sizes.gap),
        ...sizes.member,
      });
    });
  }
  return layout;
}

const mostRounds = 200;

/** separate moves overlapping places apart, along the axis on which less is missing. */
export function separate(places: Place[], gap: number): void {
  for (let round = 0; round < mostRounds; round++) {
    let moved = false;
    for (const [i, a] of places.entries()) {
      for (const b of places.slice(i + 1)) moved = pushApart(a, b, gap) || moved;
    }
    if (!moved) return;
  }
}

function pushApart(a: Place, b: Place, gap: number): boolean {
  const dx = b.x + b.width / 2 - a.x - a.width / 2;
  const dy = b.y + b.height / 2 - a.y - a.height / 2;
  const missingX = (a.width + b.width) / 2 + gap - Math.abs(dx);
  const missingY = (a.height + b.height) / 2 + gap - Math.abs(dy);
  if (missingX <= 0.5 || missingY <= 0.5) return false;
  if (missingX < missingY) {
    const half = (dx < 0 ? -1 : 1) * (missingX / 2);
    a.x -= half;
    b.x += half;
  } else {
    const half = (dy < 0 ? -1 : 1) * (missingY / 2);
    a.y -= half;
    b.y += half;
  }
  return true;
}
