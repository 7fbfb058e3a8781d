import { modelOf } from "../../../components/models";
import { graphOf, placesOf } from "../../../components/topology/layout";
import { fieldsOf, listOf, wordOf, wordsOf, type Fields } from "../text/values";

/** Shape is a node (or several equal ones) or a network, where it is drawn. */
export interface Shape {
  id: string;
  what: "node" | "network";
  /** place in its list of the spec. */
  place: number;
  name: string;
  /** detail in a line: how many, and of which group. */
  detail: string;
  x: number;
  y: number;
}

/** Line joins a node and a network. */
export interface Line {
  id: string;
  node: number;
  network: string;
  source: string;
  target: string;
  /** below: the node stands below its network. */
  below: boolean;
}

export interface Drawing {
  shapes: Shape[];
  lines: Line[];
}

const columnWidth = 190;
const rowHeight = 110;

/** Places of shapes by their ids. */
export type Places = ReadonlyMap<string, { x: number; y: number }>;

// About what a shape takes, in pixels.
const shapeSize = { width: 170, height: 64 };

/** layoutOf a drawing puts nodes about their networks, as a topology has them. */
export async function layoutOf({ shapes, lines }: Drawing): Promise<Places> {
  const { layOutGraph } = await import("../../../components/topology/elk");
  return placesOf(await layOutGraph(graphOf(shapes.map(({ id }) => ({ id, ...shapeSize })), lines.map(({ id, source, target }) => ({ id, sources: [source], targets: [target] })), 220)));
}

/** structureOf a drawing is the same as long as its layout is. */
export function structureOf({ shapes, lines }: Drawing): string {
  return [...shapes, ...lines].map(({ id }) => id).sort().join(" ");
}

/** drawingOf a spec. Shapes without a place stand in rows: networks in one, and their nodes above and below, by group. */
export function drawingOf(spec: Fields, places: Places = new Map()): Drawing {
  const networks = listOf(spec.networks).map(fieldsOf);
  const nodes = listOf(spec.nodes).map((node, place) => ({ node: fieldsOf(node), place }));
  const grouped = [...nodes].sort((a, b) => groupOf(a.node).localeCompare(groupOf(b.node)) || a.place - b.place);
  const columns = Math.max(networks.length, Math.ceil(grouped.length / 2), 1);
  const shapes: Shape[] = networks.map((network, place) => ({
    id: `network-${place}`,
    what: "network",
    place,
    name: wordOf(network.name),
    detail: modelWords(network),
    x: ((columns / Math.max(networks.length, 1)) * (place + 0.5) - 0.5) * columnWidth,
    y: rowHeight,
  }));
  for (const [order, { node, place }] of grouped.entries()) {
    const below = order >= columns;
    shapes.push({ id: `node-${place}`, what: "node", place, name: wordOf(node.name), detail: nodeWords(node), x: (order % columns) * columnWidth, y: below ? 2 * rowHeight : 0 });
  }
  const placed = shapes.map((shape) => ({ ...shape, ...placeOf(places, shape.id) }));
  const height = (id: string) => placed.find((shape) => shape.id === id)?.y ?? 0;
  const lines = nodes.flatMap(({ node, place }) =>
    [...new Set(wordsOf(node.networks))].flatMap((network) => {
      const target = networks.findIndex((each) => wordOf(each.name) === network);
      return target < 0 ? [] : [{ id: `line-${place}-${target}`, node: place, network, source: `node-${place}`, target: `network-${target}`, below: height(`node-${place}`) > height(`network-${target}`) }];
    }),
  );
  return { shapes: placed, lines };
}

function placeOf(places: Places, id: string): { x: number; y: number } | undefined {
  const place = places.get(id);
  return place && { x: place.x, y: place.y };
}

export function groupOf(node: Fields): string {
  return wordOf(node.group) || wordOf(node.name);
}

function nodeWords(node: Fields): string {
  const count = Number(wordOf(node.count) || 1);
  return [...(count > 1 ? [`× ${count}`] : []), ...(wordOf(node.group) ? [`group ${wordOf(node.group)}`] : []), ...wordsOf(node.apps)].join(", ");
}

function modelWords(network: Fields): string {
  if (wordOf(network.waveform)) return wordOf(network.waveform);
  const model = modelOf(network);
  return model ? [model, wordOf(fieldsOf(network[model]).rate)].filter((word) => word !== "").join(" ") : "no model";
}
