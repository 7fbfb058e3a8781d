// @vitest-environment node
import { expect, test } from "vitest";
import { read } from "../text/read";
import { Editing } from "./actions";
import { edited } from "../text/edits";
import type { Named } from "./references";

const text = `kind: Experiment
spec:
  networks:
  - {name: wan, links: [{from: veh, to: hq}]}
  apps:
  - {name: hub, mosquitto: {}}
  - {name: units, publisher: {to: hq/hub, failover: [hub]}, subscriber: {to: hub}}
  - {name: chat, messaging: {push: {from: [veh-2], to: hq, payload: hub}, network: wan}}
  nodes:
  - {name: hq, networks: [wan], apps: [hub]}
  - {name: veh, count: 2, networks: [wan], apps: [units]}
  - {name: veh-9}
  timeline:
  - {at: 1s, start: [units, veh-1/units], set: [{network: wan, from: veh}]}
  collect: {captures: [wan]}
`;

/** renaming gives the first element of that name another one, and says which lines the references change. */
function renaming(list: Named, before: string, after: string, beginning = text): string[] {
  const now = beginning.replace(`- {name: ${before}`, `- {name: ${after}`);
  const main = read(now).main;
  if (!main) throw new Error("the text has no experiment");
  const changed = edited(now, new Editing(main).renameReferences(list, before, after));
  return changed.split("\n").filter((line) => !now.split("\n").includes(line)).map((line) => line.trim());
}

test("an app's new name is that of all that name it, also on one node", () => {
  expect(renaming("apps", "hub", "broker")).toEqual([
    "- {name: units, publisher: {to: hq/broker, failover: [broker]}, subscriber: {to: broker}}",
    "- {name: hq, networks: [wan], apps: [broker]}",
  ]);
  expect(renaming("apps", "units", "bft")).toEqual(["- {name: veh, count: 2, networks: [wan], apps: [bft]}", "- {at: 1s, start: [bft, veh-1/bft], set: [{network: wan, from: veh}]}"]);
});

test("a network's new name is that of nodes, changes, captures and services", () => {
  expect(renaming("networks", "wan", "vhf").length).toBe(5);
});

test("the network and the nodes of a capture follow their new names", () => {
  const some = text.replace("captures: [wan]", "captures: [wan, wan/veh-1, wan/hq, hq/wan]");
  expect(renaming("networks", "wan", "vhf", some).at(-1)).toBe("collect: {captures: [vhf, vhf/veh-1, vhf/hq, hq/wan]}");
  expect(renaming("nodes", "veh", "car", some).at(-1)).toBe("collect: {captures: [wan, wan/car-1, wan/hq, hq/wan]}");
});

test("a new name of several nodes is that of each and of their group, but of no node that only looks like one", () => {
  expect(renaming("nodes", "veh", "car")).toEqual([
    "- {name: wan, links: [{from: car, to: hq}]}",
    "- {name: chat, messaging: {push: {from: [car-2], to: hq, payload: hub}, network: wan}}",
    "- {at: 1s, start: [units, car-1/units], set: [{network: wan, from: car}]}",
  ]);
  expect(renaming("nodes", "hq", "base").length).toBe(3);
});

test("a campaign's axes, levels and points follow a new name, in the paths of fields and in their values", () => {
  const matrix = `  matrix:
    axes:
    - {name: period, path: "apps[units].publisher.period", values: [1s, hub]}
    - {name: to, path: "apps[units].publisher.to", values: [hub, hq/hub, other]}
    - {name: kind, levels: [{name: a, set: [{path: "apps[hub].mosquitto", value: null}, {path: "nodes[hq].apps", value: [hub]}]}]}
    include: [{name: b, set: [{path: "networks[wan].links[0].from", value: veh}, {path: "apps[hubs].instances", value: 2}]}]
`;
  const [, spec = ""] = text.split("spec:\n");
  const campaign = `kind: Campaign\nspec:\n${matrix}  template:\n    spec:\n${spec.replaceAll(/^ {2}/gm, "      ")}`;
  const inMatrix = (list: Named, before: string, after: string) => renaming(list, before, after, campaign).filter((line) => line.includes("path:"));
  expect(inMatrix("apps", "hub", "broker")).toEqual([
    '- {name: to, path: "apps[units].publisher.to", values: [broker, hq/broker, other]}',
    '- {name: kind, levels: [{name: a, set: [{path: "apps[broker].mosquitto", value: null}, {path: "nodes[hq].apps", value: [broker]}]}]}',
  ]);
  expect(inMatrix("apps", "units", "bft")).toEqual(['- {name: period, path: "apps[bft].publisher.period", values: [1s, hub]}', '- {name: to, path: "apps[bft].publisher.to", values: [hub, hq/hub, other]}']);
  expect(inMatrix("nodes", "veh", "car")).toEqual(['include: [{name: b, set: [{path: "networks[wan].links[0].from", value: car}, {path: "apps[hubs].instances", value: 2}]}]']);
  expect(inMatrix("networks", "wan", "vhf")).toEqual(['include: [{name: b, set: [{path: "networks[vhf].links[0].from", value: veh}, {path: "apps[hubs].instances", value: 2}]}]']);
});

test("a script of MGEN has the new names of the nodes that it sends to, and its other words stay", () => {
  const flows = text.replace("  nodes:\n", "  - name: flows\n    mgen:\n      script: |\n        # veh-1 listens\n        1.0 ON 1 UDP DST veh-1/5000 PERIODIC [1 200]\n        1.0 ON 2 TCP dst hq/5000 PERIODIC [1 200]\n        1.0 ON 3 UDP DST 239.1.2.3/5000 PERIODIC [1 200]\n  nodes:\n");
  expect(renaming("nodes", "veh", "car", flows)).toContain("1.0 ON 1 UDP DST car-1/5000 PERIODIC [1 200]");
  expect(renaming("nodes", "hq", "base", flows)).toContain("1.0 ON 2 TCP dst base/5000 PERIODIC [1 200]");
  expect(renaming("nodes", "veh", "car", flows).filter((line) => line.startsWith("#"))).toEqual([]);
});

test("nothing follows where a name is another's too", () => {
  expect(renaming("apps", "hub", "units")).toEqual([]);
  expect(renaming("apps", "hub", "broker", text.replace("name: chat", "name: hub"))).toEqual([]);
  expect(renaming("nodes", "hq", "base", text.replace("{name: veh-9}", "{name: veh-9, group: hq}"))).toEqual([]);
});

/** removing an element, and what the text's other lines are then. */
function removing(list: Named, place: number, beginning = text): { less: string[]; more: string[] } {
  const main = read(beginning).main;
  if (!main) throw new Error("the text has no experiment");
  const changed = edited(beginning, new Editing(main).remove([list], place));
  const without = (from: string, other: string) => from.split("\n").filter((line) => !other.split("\n").includes(line)).map((line) => line.trim());
  return { less: without(beginning, changed), more: without(changed, beginning) };
}

test("an app that is removed leaves nodes, starts and failovers, but stays the broker of its clients", () => {
  expect(removing("apps", 0)).toEqual({
    less: ["- {name: hub, mosquitto: {}}", "- {name: units, publisher: {to: hq/hub, failover: [hub]}, subscriber: {to: hub}}", "- {name: hq, networks: [wan], apps: [hub]}"],
    more: ["- {name: units, publisher: {to: hq/hub}, subscriber: {to: hub}}", "- {name: hq, networks: [wan]}"],
  });
  expect(removing("apps", 1).more).toEqual(["- {name: veh, count: 2, networks: [wan]}", "- {at: 1s, set: [{network: wan, from: veh}]}"]);
});

test("a moment of the timeline goes with the last app that it starts, and the timeline with its last moment", () => {
  const two = text.replace("- {at: 1s, start: [units, veh-1/units], set: [{network: wan, from: veh}]}", "- {at: 1s, over: 2s, start: [units]}\n  - {at: 9s, stop: [veh-1/units, hub]}");
  expect(removing("apps", 1, two).less).toContain("- {at: 1s, over: 2s, start: [units]}");
  expect(removing("apps", 1, two).more).toContain("- {at: 9s, stop: [hub]}");
  expect(removing("apps", 1, two.replace(", hub]}", "]}")).less).toContain("timeline:");
});

test("a network that is removed leaves nodes, changes and captures", () => {
  const { less, more } = removing("networks", 0);
  expect(less).toContain("collect: {captures: [wan]}");
  expect(more).toEqual(expect.arrayContaining(["- {name: hq, apps: [hub]}", "- {at: 1s, start: [units, veh-1/units]}"]));
});

test("a network that is removed leaves its captures of some nodes, and no other network's", () => {
  const { more } = removing("networks", 0, text.replace("captures: [wan]", "captures: [wan/veh, hf/wan]").replace("  apps:\n", "  - {name: hf}\n  apps:\n"));
  expect(more).toContain("collect: {captures: [hf/wan]}");
});

test("an app stays a publisher when its only failover is removed", () => {
  expect(removing("apps", 0, text.replace("{name: chat, messaging: {push: {from: [veh-2], to: hq, payload: hub}, network: wan}}", "{publisher: {failover: [hub]}}")).more).toContain("- {publisher: {}}");
});

test("no list changes if another element has the name of the removed one", () => {
  expect(removing("apps", 0, text.replace("name: chat", "name: hub")).more).toEqual([]);
});
