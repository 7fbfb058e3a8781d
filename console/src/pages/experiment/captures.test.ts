// @vitest-environment node
import { expect, test } from "vitest";
import type { Capture, Experiment } from "../../types";
import { captureObject, capturesOf } from "./captures";

const planned = [{ name: "run", network: "wan", nodes: ["hq", "veh-1"] }];
const files = ["captures/run/wan/veh-10.pcapng", "captures/run/wan/veh-2.pcapng", "captures/mine/vhf/hq.pcapng", "logs/hq/bft/agent.jsonl"].map((path) => ({ path, bytes: 7 }));

test("a capture has its files in the order of its nodes", () => {
  expect(capturesOf(planned, [], files, false)).toMatchObject([
    { name: "mine", network: "vhf", state: "ended", files: [{ node: "hq" }] },
    { name: "run", network: "wan", nodes: "hq, veh-1", state: "capturing", files: [{ node: "veh-2" }, { node: "veh-10" }] },
  ]);
});

test("when nodes are no longer up, the capture of the run has ended", () => {
  expect(capturesOf(planned, [], [], true)[0]?.state).toBe("ended");
});

function object(status: Capture["status"]): Capture {
  return { metadata: { name: "mine" }, spec: { experiment: "e", network: "vhf" }, ...(status && { status }) };
}

test("a capture that was made by hand says whether it captures, or why not", () => {
  const condition = { type: "Capturing", lastTransitionTime: "", reason: "x" };
  const state = (status: Capture["status"]) => capturesOf([], [object(status)], [], false)[0]?.state;
  expect(state(undefined)).toBe("not begun");
  expect(state({ conditions: [{ ...condition, status: "True", message: "" }] })).toBe("capturing");
  expect(state({ conditions: [{ ...condition, status: "False", message: "spec.filter: syntax" }] })).toBe("not capturing: spec.filter: syntax");
  expect(state({ endedAt: "2026-01-01T00:00:00Z" })).toBe("ended");
});

test("fields that were left empty stay out of the object", () => {
  const e = { metadata: { name: "e" } } as Experiment;
  expect(captureObject(e, { network: "wan", node: "", filter: " ", duration: "", limit: "" }).spec).toEqual({ experiment: "e", network: "wan" });
  expect(captureObject(e, { network: "wan", node: "hq", filter: "udp", duration: "30s", limit: "64Mi" }).spec).toEqual({ experiment: "e", network: "wan", nodes: ["hq"], filter: "udp", duration: "30s", limit: "64Mi" });
});
