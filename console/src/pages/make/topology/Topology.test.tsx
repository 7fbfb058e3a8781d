import { act, screen } from "@testing-library/react";
import type { NodeChange, ReactFlowProps } from "@xyflow/react";
import { beforeEach, expect, test, vi } from "vitest";
import { openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { Topology } from "./Topology";

const drawn = vi.hoisted((): { properties: Partial<ReactFlowProps> } => ({ properties: {} }));

// jsdom has no layout, which the drawing measures.
vi.mock("@xyflow/react", () => ({
  Background: () => null,
  Controls: () => null,
  Handle: () => null,
  Position: {},
  ReactFlow: (properties: ReactFlowProps) => {
    drawn.properties = properties;
    return null;
  },
}));
vi.mock("./topology", async (original) => ({ ...(await original<object>()), layoutOf: () => Promise.resolve(new Map()) }));

const text = "kind: Experiment\nspec:\n  networks: []\n  nodes: [{name: one}, {name: two}, {name: three}]\n";

let model = new TextModel(text);

beforeEach(() => {
  model = new TextModel(text);
  openForm(model, <Topology />);
});

function change(...changes: NodeChange[]) {
  act(() => { drawn.properties.onNodesChange?.(changes); });
}

const chosen = () => (drawn.properties.nodes ?? []).filter(({ selected }) => selected).map(({ id }) => id);

test("after a node was removed none is chosen, so that another Delete removes no other one", () => {
  change({ type: "select", id: "node-0", selected: true });
  expect(chosen()).toEqual(["node-0"]);
  change({ type: "remove", id: "node-0" });
  expect(model.getSnapshot().text).toContain("nodes: [{name: two}, {name: three}]");
  expect(chosen()).toEqual([]);
  expect(screen.getByText("Choose a node or a network to change it.")).toBeTruthy();
});

test("what is chosen can be left, and another one chosen in whatever order the drawing says so", () => {
  change({ type: "select", id: "node-0", selected: true });
  change({ type: "select", id: "node-1", selected: true }, { type: "select", id: "node-0", selected: false });
  expect(chosen()).toEqual(["node-1"]);
  change({ type: "select", id: "node-1", selected: false });
  expect(chosen()).toEqual([]);
});

test("a network is removed with its lines in one step, which leaves other networks", async () => {
  const network = { id: "net-0", position: { x: 0, y: 0 }, data: {} };
  const line = { id: "line", source: "node-0", target: "net-0" };
  expect(await drawn.properties.onBeforeDelete?.({ nodes: [network], edges: [line] })).toEqual({ nodes: [network], edges: [] });
  expect(await drawn.properties.onBeforeDelete?.({ nodes: [], edges: [line] })).toEqual({ nodes: [], edges: [line] });
});
