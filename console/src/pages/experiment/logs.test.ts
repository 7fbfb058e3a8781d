// @vitest-environment node
import { expect, test } from "vitest";
import { logsOf } from "./logs";

test("logs are ordered by node and app, and what an app prints comes first", () => {
  const files = ["run.json", "radio/n1.jsonl", "logs/veh-10/bft/agent.jsonl", "logs/veh-2/bft/messages-1.jsonl", "logs/veh-2/bft/output.log", "logs/odd"].map((path) => ({ path, bytes: 1 }));
  expect(logsOf(files).map((log) => [log.node, log.file])).toEqual([
    ["veh-2", "output.log"],
    ["veh-2", "messages-1.jsonl"],
    ["veh-10", "agent.jsonl"],
  ]);
});
