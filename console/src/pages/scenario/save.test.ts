// @vitest-environment node
import { expect, test } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { objectsOf } from "./objects";
import type { Plan } from "./plan";
import { changeTo, save, type Cluster } from "./save";
import { loadedOf, type Loaded } from "./loaded";

const plan: Plan = { name: "patrol", namespace: "team", description: "", platforms: [{ number: 1, name: "hq", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }] }], propagation: undefined };
const { configMap, scenario } = objectsOf(plan);

function loaded(): Loaded {
  const version = { resourceVersion: "7", uid: "u" };
  return loadedOf({ ...scenario, metadata: { ...scenario.metadata, ...version } }, [{ ...configMap, data: { "tracks.csv": "old" }, metadata: { ...configMap.metadata, ...version } }]);
}

/** fake cluster, which notes what is done to it, and refuses one thing. */
function fake(refused = "", reason = "Forbidden", there: Record<string, string> = {}) {
  const done: string[] = [];
  const changes: unknown[] = [];
  const write = (verb: string, kind: string, name: string, dryRun: boolean) => {
    const what = `${dryRun ? "check" : verb} ${kind}/${name}`;
    if (what === refused) return Promise.reject(new Refusal(409, "The API server refused it.", reason));
    done.push(what);
    return Promise.resolve({ metadata: { name, uid: "new" } });
  };
  const to: Cluster = {
    create: (kind, _, object, dryRun) => write("create", kind.kind, object.metadata.name, dryRun),
    get: (_, name) => Promise.resolve({ metadata: { name }, data: there }),
    patch: (kind, _, name, change, dryRun) => {
      if (!dryRun) changes.push(change);
      return write("patch", kind.kind, name, dryRun);
    },
    remove: (_, name, uid) => {
      done.push(`remove ${name} ${uid}`);
      return Promise.resolve();
    },
  };
  return { to, done, changes };
}

test("saving over a Scenario leaves nothing of the old spec", () => {
  const change = changeTo({ ...scenario.spec, propagation: { model: "FreeSpace", frequency: "60MHz" } });
  expect(change).toMatchObject({ spec: { synthetic: null, sources: null, propagation: { model: "FreeSpace", terrain: null, exponent: null } } });
});

test("both objects are checked before one is written, also when they replace others", async () => {
  const { to, done, changes } = fake();
  await save(plan, loaded(), to);
  expect(done).toEqual(["check Scenario/patrol", "check ConfigMap/patrol-tracks", "patch ConfigMap/patrol-tracks", "patch Scenario/patrol"]);
  expect(changes).toMatchObject([{ metadata: { resourceVersion: "7" } }, { metadata: { resourceVersion: "7" } }]);
});

test("a Scenario that would be refused leaves its file as it was", async () => {
  const { to, changes } = fake("check Scenario/patrol");
  await expect(save(plan, loaded(), to)).rejects.toThrow("The API server refused it.");
  expect(changes).toEqual([]);
});

test("a file is put back if its Scenario is refused after all", async () => {
  const over = fake("patch Scenario/patrol");
  await expect(save(plan, loaded(), over.to)).rejects.toThrow("The API server refused it.");
  expect(over.changes.at(-1)).toEqual({ data: { "tracks.csv": "old" } });
  const again = fake("create Scenario/patrol");
  await expect(save(plan, undefined, again.to)).rejects.toThrow("The API server refused it.");
  expect(again.done.at(-1)).toBe("remove patrol-tracks new");
});

test("what others have changed since is not overwritten", async () => {
  const { to } = fake("check Scenario/patrol", "Conflict");
  await expect(save(plan, loaded(), to)).rejects.toThrow("Scenario patrol was changed since it was opened here.");
});

test("a ConfigMap of the name that the Scenario does not read is not overwritten", async () => {
  const others = fake("check ConfigMap/patrol-tracks", "AlreadyExists", { "tracks.csv": "another" });
  await expect(save(plan, { ...loaded(), files: [] }, others.to)).rejects.toThrow("ConfigMap patrol-tracks is in namespace team already, with other contents.");
  expect(others.done).toEqual([]);
  const equal = fake("check ConfigMap/patrol-tracks", "AlreadyExists", configMap.data);
  await save(plan, undefined, equal.to);
  expect(equal.done).toEqual(["check Scenario/patrol", "create Scenario/patrol"]);
});
