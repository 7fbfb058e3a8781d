// @vitest-environment node
import { expect, test } from "vitest";
import type { Plan } from "../../archive/types";
import type { Experiment } from "../../types";
import { topologyOf } from "./graph";
import { fromElk, idOf, separate, toElk, type Place } from "./layout";

const spec = {
  apps: [{ name: "broker", mosquitto: {} }, { name: "bft", publisher: {} }],
  networks: [
    { name: "wan", subnet: "198.18.0.0/24", link: {} },
    { name: "vhf", subnet: "198.18.1.0/24", waveform: "narrow" },
  ],
  nodes: [
    { name: "hq", networks: ["wan", "vhf"], apps: ["broker"] },
    { name: "fwd", group: "hq", networks: ["wan"], apps: ["broker"] },
    { name: "veh", count: 20, networks: ["vhf"], apps: ["bft"] },
  ],
} as unknown as Experiment["spec"];

const plan = {
  nodes: [
    { name: "hq", apps: [{ name: "broker" }] },
    { name: "fwd", apps: [] },
    { name: "veh-1", apps: [{ name: "bft", brokers: ["hq/broker"] }, { name: "chat", brokers: ["hq/broker", "vhf"] }] },
  ],
  passages: [{ from: "hq/broker", to: "fwd/broker", filters: ["#"] }],
} as unknown as Plan;

test("nodes stand in their groups, and groups join networks", () => {
  const { groups, attachments, networks } = topologyOf(spec);
  expect(groups.map((group) => [group.name, group.members.length])).toEqual([
    ["hq", 2],
    ["veh", 20],
  ]);
  expect(attachments).toContainEqual({ group: "hq", network: "vhf", members: 1, of: 2 });
  expect(attachments).toContainEqual({ group: "veh", network: "vhf", members: 20, of: 20 });
  expect(attachments.find((a) => a.group === "veh" && a.network === "wan")).toBeUndefined();
  expect(networks.map((network) => network.model)).toEqual(["link", "narrow"]);
});

test("brokers are known by their kind", () => {
  expect(topologyOf(spec).groups[0]?.members.map((member) => member.brokers)).toEqual([["broker"], ["broker"]]);
});

test("the plan adds who uses which broker, and passages between brokers", () => {
  expect(topologyOf(spec).passages).toEqual([]);
  expect(topologyOf(spec, plan).passages).toEqual([
    { kind: "broker", from: "hq", to: "fwd", label: "broker" },
    { kind: "client", from: "veh-1", to: "hq", label: "bft, chat" },
  ]);
});

test("places that overlap are moved apart", () => {
  const places: Place[] = Array.from({ length: 12 }, (_, i) => ({ x: i, y: 2 * i, width: 100, height: 40 }));
  separate(places, 10);
  for (const [i, a] of places.entries()) {
    for (const b of places.slice(i + 1)) {
      const apart = Math.abs(a.x - b.x) >= 109 || Math.abs(a.y - b.y) >= 49;
      expect(apart).toBe(true);
    }
  }
});

test("every member lies within the box of its group", () => {
  const topology = topologyOf(spec, plan);
  const layout = fromElk(toElk(topology), topology);
  const box = layout.get(idOf.group("veh"));
  for (let i = 1; i <= 20; i++) {
    const place = layout.get(idOf.member(`veh-${i}`));
    expect(place && box && place.x >= 0 && place.y >= 0 && place.x + place.width <= box.width && place.y + place.height <= box.height).toBe(true);
  }
});
