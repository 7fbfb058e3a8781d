// @vitest-environment node
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { RunSummary } from "../../archive/types";
import { filterOf } from "../home/entries";
import { archivedRuns, chosenRuns } from "./archived";

const recorded = JSON.parse(readFileSync(new URL("../../testing/data/runs.json", import.meta.url), "utf8")) as RunSummary[];
const names = (runs: readonly { name: string }[]) => runs.map(({ name }) => name);

test("runs of several namespaces are one list, newest first, and one without T0 stays where the archive has it", () => {
  const other: RunSummary[] = [
    { namespace: "prt", name: "newest", uid: "p1", phase: "Running", t0: "2026-03-02T10:00:06.5Z" },
    { namespace: "prt", name: "between", uid: "p2", phase: "Succeeded", t0: "2026-03-02T09:00:00Z" },
    { namespace: "prt", name: "never-started", uid: "p3", phase: "Failed" },
  ];
  expect(names(archivedRuns([recorded, other]))).toEqual(["newest", "patrol-2", "patrol-1", "between", "e5-cut-1", "never-started"]);
});

test.each([
  ["all", {}, ["patrol-2", "patrol-1", "e5-cut-1"]],
  ["words of name and UID", { q: "PATROL 0b6fd5cc" }, ["patrol-1"]],
  ["words of the campaign", { q: "e5, round 2" }, ["e5-cut-1"]],
  ["words of the problem", { q: "damaged" }, ["patrol-2"]],
  ["a phase", { phase: "Failed" }, ["patrol-2"]],
  ["a namespace", { ns: "prt" }, []],
  ["no runs of campaigns", { runs: "hide" }, ["patrol-2", "patrol-1"]],
])("a filter leaves runs by %s", (_, search, want) => {
  expect(names(chosenRuns(archivedRuns([recorded]), filterOf(search)))).toEqual(want);
});
