import { expect, test } from "vitest";
import { drawingOf } from "./topology";

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

test("an empty spec has an empty drawing", () => {
  expect(drawingOf({})).toEqual({ shapes: [], lines: [] });
});
