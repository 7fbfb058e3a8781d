// @vitest-environment node
import { expect, test, vi } from "vitest";
import { archivedEvents, clusterEvents, textOf } from "./events";

const line = (more: object) => JSON.stringify({ ts: 2e18, uid: "a", type: "Normal", reason: "Pulled", object: { kind: "Pod", name: "e-hq" }, node: "hq", message: "image is there", count: 1, ...more });
const lines = (texts: string[]) => texts.map((text) => ({ text }));

test("of a repeated event the newest line counts", () => {
  const events = archivedEvents(lines([line({}), line({ uid: "b", ts: 1e18 }), line({ count: 3, ts: 3e18 })]));
  expect(events.map((e) => [e.uid, e.count, e.milliseconds])).toEqual([
    ["b", 1, 1e12],
    ["a", 3, 3e12],
  ]);
});

test("lines that are no events are left out", () => {
  expect(archivedEvents(lines(["", "{", "null", "[]", '{"ts":"x"}', line({}).slice(0, 30), '{"ts":1,"uid":"u"}']))).toMatchObject([{ uid: "u", object: "", count: 1 }]);
});

test("an event is told in one line", () => {
  const [event] = archivedEvents(lines([line({ count: 2 })]));
  expect(event && textOf(event)).toBe("Pulled (2 times)  hq: image is there");
});

test("events of the cluster have the time of their last occurrence", () => {
  const event = { metadata: { name: "x", uid: "x" }, involvedObject: { kind: "Experiment", name: "e" }, type: "Warning", reason: "NoRoom", message: "waits", lastTimestamp: null, eventTime: "2026-01-01T00:00:00Z" };
  expect(clusterEvents([event])).toMatchObject([{ milliseconds: Date.parse("2026-01-01T00:00:00Z"), isWarning: true, object: "Experiment e" }]);
});

test("a line is parsed once, however often more are added", () => {
  const parse = vi.spyOn(JSON, "parse");
  const some = lines([line({}), line({ uid: "b" })]);
  archivedEvents(some);
  expect(archivedEvents([...some, ...lines([line({ uid: "c" })])]).map((e) => e.uid)).toEqual(["a", "b", "c"]);
  expect(parse).toHaveBeenCalledTimes(3);
  parse.mockRestore();
});
