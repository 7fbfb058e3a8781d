// @vitest-environment node
import ELK from "elkjs/lib/elk.bundled.js";
import { expect, test, vi } from "vitest";
import { drawingOf, layoutOf, structureOf } from "./topology";

// Tests have no workers.
vi.mock("../../../components/topology/elk", () => ({ layOutGraph: (graph: Parameters<InstanceType<typeof ELK>["layout"]>[0]) => new ELK().layout(graph) }));

const spec = {
  networks: [{ name: "wan", waveform: "satcom" }, { name: "vhf", link: { rate: "16kbit" } }],
  nodes: [{ name: "hq", networks: ["wan", "vhf"], apps: ["broker"] }, { name: "veh", count: 23, group: "nor", networks: ["vhf", "gone"] }, { name: "alone" }],
};

test("nodes are joined to the networks that they name, and to none that is not there", () => {
  expect(drawingOf(spec).lines.map((line) => `${line.source} ${line.target}`)).toEqual(["node-0 network-0", "node-0 network-1", "node-1 network-1"]);
});

test("a shape says in a line what it is", () => {
  expect(drawingOf(spec).shapes.map((shape) => `${shape.name}: ${shape.detail}`)).toEqual(["wan: satcom", "vhf: link 16kbit", "alone: ", "hq: broker", "veh: × 23, group nor"]);
});

test("no two shapes stand on each other, and one that was moved stays where it is", () => {
  const moved = new Map([["node-0", { x: -7, y: -9 }]]);
  const places = drawingOf(spec, moved).shapes.map((shape) => `${shape.x} ${shape.y}`);
  expect(new Set(places).size).toBe(places.length);
  expect(places).toContain("-7 -9");
});

test("the layout puts each node near the networks that it is on, and none upon another", async () => {
  const drawing = drawingOf({
    networks: [{ name: "a" }, { name: "b" }, { name: "lead" }],
    nodes: [...["a", "b"].flatMap((name) => [1, 2, 3].map((i) => ({ name: `${name}-${i}`, networks: [name] }))), { name: "lead-a", networks: ["a", "lead"] }, { name: "lead-b", networks: ["b", "lead"] }],
  });
  const places = await layoutOf(drawing);
  const far = (a: string, b: string) => Math.hypot((places.get(a)?.x ?? NaN) - (places.get(b)?.x ?? NaN), (places.get(a)?.y ?? NaN) - (places.get(b)?.y ?? NaN));
  for (const node of ["node-0", "node-1", "node-2"]) expect(far(node, "network-0")).toBeLessThan(far(node, "network-1"));
  const all = [...places.keys()];
  expect(all.length).toBe(11);
  expect(Math.min(...all.flatMap((a, i) => all.slice(i + 1).map((b) => far(a, b))))).toBeGreaterThan(60);
});

test("a layout holds until nodes, networks or their lines change", () => {
  const renamed = { ...spec, nodes: [{ ...spec.nodes[0], name: "head" }, ...spec.nodes.slice(1)] };
  expect(structureOf(drawingOf(renamed))).toBe(structureOf(drawingOf(spec)));
  expect(structureOf(drawingOf({ ...spec, nodes: spec.nodes.slice(1) }))).not.toBe(structureOf(drawingOf(spec)));
});

test("an empty spec has an empty drawing", () => {
  expect(drawingOf({})).toEqual({ shapes: [], lines: [] });
});
