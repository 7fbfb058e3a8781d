// @vitest-environment node
import { expect, test } from "vitest";
import type { Campaign, Experiment } from "../../types";
import { arrange, entryOfCampaign, entryOfExperiment, filterOf, linesOf, searchOf, type Entry, type Filter } from "./entries";

const everything: Filter = { namespace: "", phase: "", words: "", runs: true };

function experiment(name: string, status: NonNullable<Experiment["status"]>, labels: Record<string, string> = {}): Experiment {
  return { metadata: { name, namespace: "nor", uid: `uid-${name}`, creationTimestamp: "2026-11-27T08:00:00Z", labels }, spec: { nodes: [] } as unknown as Experiment["spec"], status };
}

const condition = (type: string, message: string) => ({ type, status: "False" as const, reason: "NoRoom", message, lastTransitionTime: "2026-11-27T08:00:00Z" });

const running = experiment("runs", { phase: "Running", progress: "42%", message: "all nodes run", nodes: { summary: "2/2" }, startTime: "2026-11-27T08:01:00Z" });
const second = experiment("second", { phase: "Queued", queue: { position: 2, expectedStart: "2026-11-27T08:20:00Z" }, conditions: [condition("Admitted", "3 pods are free, 24 are needed")] });
const first = experiment("first", { phase: "Queued", queue: { position: 1 } });
const never = experiment("never", { phase: "Queued", conditions: [condition("Admitted", "the cluster is too small")] });
const old = experiment("old", { phase: "Succeeded", completionTime: "2026-11-27T07:00:00Z", results: { deliveredPercent: "99.83", medianDelay: "112.4ms", keptUp: true } as never });
const recent = experiment("recent", { phase: "Failed", completionTime: "2026-11-27T07:30:00Z", message: "an image is missing" }, { "vignette.dev/campaign": "series" });
const campaign: Campaign = {
  metadata: { name: "series", namespace: "prt", creationTimestamp: "2026-11-26T08:00:00Z" },
  spec: {} as Campaign["spec"],
  status: { phase: "Running", counts: { succeeded: 60, failed: 1, skipped: 1, total: 124, summary: "62/124" } },
};

const all: Entry[] = [old, never, second, running, recent, first].map(entryOfExperiment).concat(entryOfCampaign(campaign));
const names = (entries: readonly Entry[]) => entries.map((entry) => entry.name);

test("what runs comes before what waits, in the order of the queue, and before what has ended, the last first", () => {
  expect(names(arrange(all, everything))).toEqual(["series", "runs", "first", "second", "never", "recent", "old"]);
});

test("each group has a heading with the number of its entries", () => {
  const lines = linesOf(arrange(all, everything)).flatMap((line) => ("heading" in line ? [`${line.heading} ${line.count}`] : []));
  expect(lines).toEqual(["running 2", "waiting 3", "finished 2"]);
});

test("an experiment that waits says at which place, until when and why", () => {
  expect(entryOfExperiment(second)).toMatchObject({ group: "waiting", place: 2, expectedStart: "2026-11-27T08:20:00Z", note: "3 pods are free, 24 are needed" });
});

test("a run that has ended shows its headline", () => {
  expect(entryOfExperiment(old)).toMatchObject({ group: "finished", delivered: "99.83", medianDelay: "112.4ms", keptUp: true, progress: undefined });
});

test("an experiment that nobody has looked at yet waits", () => {
  expect(entryOfExperiment({ metadata: { name: "new" }, spec: old.spec })).toMatchObject({ phase: "Submitted", group: "waiting", place: 0 });
});

test("runs that failed or were skipped count as progress of a campaign", () => {
  expect(entryOfCampaign(campaign)).toMatchObject({ progress: 50, count: "62/124", group: "running" });
});

test("a campaign that has ended counts from the end of its round, and one that runs from its start", () => {
  const [roundStartTime, roundCompletionTime] = ["2026-11-26T09:00:00Z", "2026-11-27T07:00:00Z"];
  const since = (phase: "Running" | "Succeeded") => entryOfCampaign({ ...campaign, status: { phase, roundStartTime, roundCompletionTime } }).since;
  expect([since("Succeeded"), since("Running")]).toEqual([roundCompletionTime, roundStartTime]);
});

test.each(["Scheduled", "Suspended"] as const)("a campaign that is %s waits", (phase) => {
  expect(entryOfCampaign({ ...campaign, status: { phase } }).group).toBe("waiting");
});

test.each([
  [{ namespace: "prt" }, ["series"]],
  [{ phase: "Failed" }, ["recent"]],
  [{ words: "PODS free" }, ["second"]],
  [{ words: "pods absent" }, []],
  [{ runs: false }, ["series", "runs", "first", "second", "never", "old"]],
])("the filter %j leaves %j", (part, left) => {
  expect(names(arrange(all, { ...everything, ...part }))).toEqual(left);
});

test("a filter comes back from the address as it was", () => {
  const filter: Filter = { namespace: "nor", phase: "Failed", words: "a b", runs: false };
  expect(filterOf(searchOf(filter))).toEqual(filter);
  expect(searchOf(everything)).toEqual({});
});

test("a name that looks like a number is still a name in the address", () => {
  expect(filterOf({ q: 42 }).words).toBe("42");
});

test("only what has begun has results: the name of other experiments leads to their own page", () => {
  const withoutStart = experiment("refused", { phase: "Failed", message: "the image was not found" });
  const cut = experiment("cut", { phase: "Failed", t0: "2026-11-27T07:00:00Z" });
  const goes = experiment("goes", { phase: "Running", t0: "2026-11-27T07:00:00Z" });
  expect([withoutStart, cut, old, goes].map((e) => entryOfExperiment(e).recorded)).toEqual([false, true, true, false]);
});
