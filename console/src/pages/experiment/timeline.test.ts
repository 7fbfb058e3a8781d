// @vitest-environment node
import { expect, test } from "vitest";
import { describeChange } from "../../components/radiochange";
import type { Experiment, LiveChange } from "../../types";
import { executed, ticksOf, timelineOf } from "./timeline";

const spec = {
  duration: "10m",
  apps: [{ name: "broker" }, { name: "bft" }, { name: "chat" }],
  networks: [],
  nodes: [],
  timeline: [
    { at: "1m", start: ["bft"] },
    { at: "2m", start: ["hq/chat"], set: [{ network: "wan", link: { delay: "200ms" } }] },
    { at: "5m", stop: ["bft", "broker"], start: ["broker"] },
  ],
} as unknown as Experiment["spec"];

function row(name: string) {
  return timelineOf(spec, [], undefined, 0).rows.find((r) => r.name === name);
}

test("an app that no entry starts runs from T0 to the end, and others between their start and stop", () => {
  expect(row("bft")?.bars).toEqual([{ from: 60, to: 300 }]);
  expect(row("hq/chat")?.bars).toEqual([{ from: 120, to: 600 }]);
  expect(row("chat")).toBeUndefined();
});

test("an app in start and stop of one entry is restarted", () => {
  const restarted = { ...spec, timeline: [{ at: "10s", start: ["bft"] }, { at: "1m", stop: ["bft"], start: ["bft"] }] };
  expect(timelineOf(restarted, [], undefined, 0).rows.find((r) => r.name === "bft")?.bars).toEqual([
    { from: 10, to: 60 },
    { from: 60, to: 600 },
  ]);
});

test("an app that is started on one node only runs elsewhere from T0", () => {
  const nodes = [
    { name: "hq", apps: ["chat"] },
    { name: "veh", count: 2, apps: ["chat"] },
  ];
  expect(timelineOf({ ...spec, nodes }, [], undefined, 0).rows.find((r) => r.name === "chat elsewhere")?.bars).toEqual([{ from: 0, to: 600 }]);
  expect(timelineOf({ ...spec, nodes: nodes.slice(0, 1) }, [], undefined, 0).rows.find((r) => r.name === "chat elsewhere")).toBeUndefined();
});

test("planned changes and those by hand have rows of their own", () => {
  const change = { metadata: { name: "c" }, spec: { experiment: "e", changes: [{ network: "wan", silent: true }] }, status: { appliesAt: "2026-01-01T00:03:00Z" } } as LiveChange;
  const { rows, list } = timelineOf(spec, [change], "2026-01-01T00:00:00Z", 0);
  expect(rows.find((r) => r.name === "networks")?.marks).toEqual([{ at: 120, text: "wan: delay 200ms", kind: "set" }]);
  expect(rows.find((r) => r.name === "live changes")?.marks).toEqual([{ at: 180, text: "wan: silent", kind: "live" }]);
  expect(list.map(({ at }) => at)).toEqual([60, 120, 120, 180, 300, 300, 300, 600]);
});

test("a change that was refused says why", () => {
  const condition = { type: "Applied", status: "False" as const, message: "there is no network wan", reason: "Invalid", lastTransitionTime: "" };
  const change = { metadata: { name: "c", creationTimestamp: "2026-01-01T00:01:00Z" }, spec: { experiment: "e", changes: [{ network: "wan", silent: true }] }, status: { conditions: [condition] } } as LiveChange;
  const { rows } = timelineOf(spec, [change], "2026-01-01T00:00:00Z", 0);
  expect(rows.at(-1)?.marks[0]).toEqual({ at: 60, text: "wan: silent (not applied: there is no network wan)", kind: "waiting" });
});

test("the axis of a live cluster grows with its time", () => {
  const live = { ...spec, duration: undefined, timeline: [] } as unknown as Experiment["spec"];
  expect(timelineOf(live, [], undefined, 1000).end).toBeCloseTo(1100);
  expect(timelineOf(live, [], undefined, 1000).rows[0]?.bars).toEqual([{ from: 0, to: undefined }]);
});

test("ticks are at round times, and not too many", () => {
  expect(ticksOf(600, 6)).toEqual([0, 120, 240, 360, 480, 600]);
  expect(ticksOf(1e6, 6).length).toBeLessThanOrEqual(7);
});

test("actions that are due are counted", () => {
  const actions = [60, 300].map((at) => ({ id: String(at), atNanoseconds: at * 1e9, verb: "start" as const, targets: [] }));
  expect(executed(actions, 100)).toBe("1 of 2 actions are due; next: start at T0+5m00s");
  expect(executed(actions, 301)).toBe("2 of 2 actions are due");
});

test("a change of a network is described with its ends and its values", () => {
  expect(describeChange({ network: "wan", from: "hq", to: "veh", link: { loss: "3%", gilbertElliott: { goodToBad: "1%", badToGood: "20%" } } })).toBe(
    "wan, hq to veh: loss 3%, gilbert elliott good to bad 1%, bad to good 20%",
  );
  expect(describeChange({ network: "vhf", from: "*", radio: { transmit: false } })).toBe("vhf: transmit off");
  expect(describeChange({ network: "vhf", jammer: { name: "j", power: "40dBm", position: { latitude: "47", longitude: "8" } } })).toBe("vhf: jammer j 40dBm at 47, 8");
});
