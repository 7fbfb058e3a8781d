// @vitest-environment node
import { expect, test } from "vitest";
import { Refusal } from "../../../kubernetes/client";
import type { Kind, KubernetesObject } from "../../../kubernetes/kinds";
import { read } from "../text/read";
import { submit, type Cluster } from "./submit";

const text = `kind: Experiment
metadata: {name: run}
spec: {scenario: {ref: hills}}
---
kind: Scenario
metadata: {name: hills}
spec: {format: synthetic}
`;

/** fake cluster, which notes what is done to it. */
function fake(there: Record<string, Record<string, unknown>> = {}, refused = "") {
  const done: string[] = [];
  const key = (kind: Kind<KubernetesObject>, name: string) => `${kind.kind}/${name}`;
  const to: Cluster = {
    create: (kind, _, object, dryRun) => {
      const { generateName } = object.metadata;
      const own = generateName === undefined ? object.metadata.name : `${generateName}x7k2p`;
      const name = key(kind, own);
      if (there[name]) return Promise.reject(new Refusal(409, "exists", "AlreadyExists"));
      if (!dryRun && name === refused) return Promise.reject(new Refusal(403, "The quota is used up."));
      done.push(`${dryRun ? "check" : "create"} ${name}`);
      return Promise.resolve({ metadata: { name: own, uid: `uid of ${name}` } });
    },
    get: (kind, _, name) => Promise.resolve({ metadata: { name }, ...there[key(kind, name)] }),
    remove: (kind, _, name, uid) => {
      done.push(`remove ${key(kind, name)} ${uid}`);
      return Promise.resolve();
    },
  };
  return { to, done };
}

function make(to: Cluster, of = text) {
  const { objects, main } = read(of);
  return submit(objects, main, "team", to);
}

test("everything is checked before anything is created, and what is referred to comes first", async () => {
  const { to, done } = fake();
  expect(await make(to)).toEqual({ namespace: "team", kind: "Experiment", name: "run" });
  expect(done).toEqual(["check Scenario/hills", "check Experiment/run", "create Scenario/hills", "create Experiment/run"]);
});

const generated = text.replace("{name: run}", "{generateName: run-}");

test("an experiment without a name has the one that the API server has given it", async () => {
  expect(await make(fake().to, generated)).toEqual({ namespace: "team", kind: "Experiment", name: "run-x7k2p" });
});

test("an experiment that was created with a generated name is removed by that name after a refusal", async () => {
  const { to, done } = fake({}, "Campaign/series");
  await expect(make(to, `${generated}---\nkind: Campaign\nmetadata: {name: series}\n`)).rejects.toThrow("The quota is used up. Nothing was created.");
  expect(done.slice(-2)).toEqual(["remove Experiment/run-x7k2p uid of Experiment/run-x7k2p", "remove Scenario/hills uid of Scenario/hills"]);
});

test("after a lost answer about an experiment without a name nothing is removed", async () => {
  const { to } = losing(() => Promise.reject(new Refusal(404, "not found")));
  await expect(make(to, generated)).rejects.toThrow("Experiment run-… may have been created all the same");
});

test("an equal object that is there already is used, with the defaults that the API server gave it", async () => {
  const { to, done } = fake({ "Scenario/hills": { spec: { format: "synthetic", step: "1s" } } });
  await make(to);
  expect(done).toEqual(["check Experiment/run", "create Experiment/run"]);
});

test("another object of the name, or an experiment of the name, refuses everything", async () => {
  await expect(make(fake({ "Scenario/hills": { spec: { format: "eel" } } }).to)).rejects.toThrow("Scenario hills is there already with other contents");
  await expect(make(fake({ "Experiment/run": {} }).to)).rejects.toThrow("give it another name");
});

test("what was created before a refusal is removed again", async () => {
  const { to, done } = fake({}, "Experiment/run");
  await expect(make(to)).rejects.toThrow("The quota is used up. Nothing was created.");
  expect(done.at(-1)).toBe("remove Scenario/hills uid of Scenario/hills");
});

/** losing the answer about the experiment. The cluster then answers a question for it with what is there, or with a refusal. */
function losing(there: () => Promise<KubernetesObject>, lost = new Refusal(0, "The console does not answer.")) {
  const { to, done } = fake();
  const create: Cluster["create"] = (kind, namespace, object, dryRun) => (!dryRun && kind.kind === "Experiment" ? Promise.reject(lost) : to.create(kind, namespace, object, dryRun));
  return { to: { ...to, create, get: there }, done };
}

test.each([
  ["is there", () => Promise.resolve({ metadata: { name: "run" } })],
  ["cannot be asked for", () => Promise.reject(new Refusal(0, "The console does not answer."))],
])("after a lost answer nothing is removed, and no word says so, if the experiment %s", async (_, there) => {
  const { to, done } = losing(there);
  await expect(make(to)).rejects.toThrow("Experiment run may have been created all the same: look for it before you try again. Left as they are: Scenario hills.");
  expect(done.at(-1)).toBe("create Scenario/hills");
});

test("after a lost answer what was created is removed if the experiment is not there", async () => {
  const { to, done } = losing(() => Promise.reject(new Refusal(404, "not found")), new Refusal(504, "The API server took too long."));
  await expect(make(to)).rejects.toThrow("The API server took too long. Nothing was created.");
  expect(done.at(-1)).toBe("remove Scenario/hills uid of Scenario/hills");
});

test("a kind that the console does not know is refused before anything is sent", async () => {
  const { to, done } = fake();
  await expect(make(to, `${text}---\nkind: Secret\nmetadata: {name: s}\n`)).rejects.toThrow("Secret s: the console creates none of this kind");
  expect(done).toEqual([]);
});
