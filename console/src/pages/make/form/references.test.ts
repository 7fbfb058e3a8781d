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

test("a new name of several nodes is that of each and of their group, but of no node that only looks like one", () => {
  expect(renaming("nodes", "veh", "car")).toEqual([
    "- {name: wan, links: [{from: car, to: hq}]}",
    "- {name: chat, messaging: {push: {from: [car-2], to: hq, payload: hub}, network: wan}}",
    "- {at: 1s, start: [units, car-1/units], set: [{network: wan, from: car}]}",
  ]);
  expect(renaming("nodes", "hq", "base").length).toBe(3);
});

test("nothing follows where a name is another's too", () => {
  expect(renaming("apps", "hub", "units")).toEqual([]);
  expect(renaming("apps", "hub", "broker", text.replace("name: chat", "name: hub"))).toEqual([]);
  expect(renaming("nodes", "hq", "base", text.replace("{name: veh-9}", "{name: veh-9, group: hq}"))).toEqual([]);
});
