// @vitest-environment node
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Refusal, type List, type Selection } from "./client";
import { Informer, keptMilliseconds, type Transport, type Watch, type WatchHandlers } from "./informer";
import type { Kind, KubernetesObject } from "./kinds";

const things: Kind<KubernetesObject> = { group: "vignette.dev", version: "v1alpha1", plural: "things", kind: "Thing", namespaced: true };

function thing(name: string, resourceVersion = "1", labels: Record<string, string> = {}): KubernetesObject {
  return { metadata: { name, namespace: "team", resourceVersion, labels } };
}

/** A cluster that lists what it has, and whose watches the test drives. */
class Cluster implements Transport {
  objects: KubernetesObject[] = [];
  refusal: Refusal | undefined;
  lists = 0;
  watches: { path: string; handlers: WatchHandlers; closed: boolean }[] = [];

  list<T extends KubernetesObject>(_kind: Kind<T>, _selection: Selection): Promise<List<T>> {
    this.lists++;
    if (this.refusal) return Promise.reject(this.refusal);
    return Promise.resolve({ resourceVersion: "10", items: this.objects as T[] });
  }

  watch(path: string, handlers: WatchHandlers): Watch {
    const watch = { path, handlers, closed: false };
    this.watches.push(watch);
    return {
      close: () => {
        watch.closed = true;
        handlers.end();
      },
    };
  }

  last() {
    const watch = this.watches.at(-1);
    if (!watch) throw new Error("nothing is watched");
    return watch;
  }

  send(type: string, object: KubernetesObject) {
    this.last().handlers.message(JSON.stringify({ type, object }));
  }
}

function follow(cluster: Cluster) {
  const informer = new Informer(things, { namespace: "team" }, cluster);
  let changes = 0;
  const leave = informer.subscribe(() => changes++);
  return { informer, leave, changes: () => changes, names: () => informer.getSnapshot().objects?.map((o) => o.metadata.name) };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(150);

test("objects are listed, then follow every change", async () => {
  const cluster = new Cluster();
  cluster.objects = [thing("b"), thing("a")];
  const { names } = follow(cluster);
  expect(names()).toBeUndefined();
  await settle();
  expect(names()).toEqual(["a", "b"]);
  cluster.send("ADDED", thing("c", "11"));
  cluster.send("DELETED", thing("a", "12"));
  await settle();
  expect(names()).toEqual(["b", "c"]);
});

test("a burst of changes is published once", async () => {
  const cluster = new Cluster();
  const { changes, names } = follow(cluster);
  await settle();
  const before = changes();
  for (let i = 0; i < 50; i++) cluster.send("ADDED", thing(`t${i}`, String(11 + i)));
  await settle();
  expect(changes()).toBe(before + 1);
  expect(names()).toHaveLength(50);
});

test("a watch that ended goes on from where it was", async () => {
  const cluster = new Cluster();
  follow(cluster);
  await settle();
  cluster.send("BOOKMARK", thing("", "77"));
  cluster.last().handlers.end();
  await settle();
  expect(cluster.lists).toBe(1);
  expect(cluster.last().path).toContain("resourceVersion=77");
});

test("changes that the server has forgotten are listed again", async () => {
  const cluster = new Cluster();
  cluster.objects = [thing("old")];
  const { names } = follow(cluster);
  await settle();
  cluster.objects = [thing("new")];
  cluster.send("ERROR", { ...thing(""), metadata: { name: "" } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(names()).toEqual(["new"]);
});

test("an error keeps what was known, and says so", async () => {
  const cluster = new Cluster();
  cluster.objects = [thing("a")];
  const { informer, names } = follow(cluster);
  await settle();
  cluster.refusal = new Refusal(0, "The console does not answer.");
  cluster.last().handlers.end();
  await vi.advanceTimersByTimeAsync(1000);
  expect(names()).toEqual(["a"]);
  expect(informer.getSnapshot().error?.message).toBe("The console does not answer.");
  cluster.refusal = undefined;
  await vi.advanceTimersByTimeAsync(5000);
  expect(informer.getSnapshot().error).toBeUndefined();
});

test("who may not list them sees why, and is asked for rarely", async () => {
  const cluster = new Cluster();
  cluster.refusal = new Refusal(403, "you may not list things");
  const { informer } = follow(cluster);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(informer.getSnapshot()).toEqual({ objects: undefined, error: cluster.refusal });
  expect(cluster.lists).toBe(1);
});

test("nobody left, nothing is watched; whoever comes back sees the cluster as it is", async () => {
  const cluster = new Cluster();
  const { informer, leave, names } = follow(cluster);
  await settle();
  leave();
  expect(cluster.last().closed).toBe(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(cluster.lists).toBe(1);
  cluster.objects = [thing("later")];
  informer.subscribe(() => undefined);
  await settle();
  expect(names()).toEqual(["later"]);
});

test("an event that cannot be read is a reason to list again", async () => {
  const cluster = new Cluster();
  const { names } = follow(cluster);
  await settle();
  cluster.objects = [thing("later")];
  cluster.last().handlers.message("<html>");
  await vi.advanceTimersByTimeAsync(1000);
  expect(names()).toEqual(["later"]);
});

test("a failure of the page itself has words for people", async () => {
  const cluster = new Cluster();
  cluster.refusal = new TypeError("x is undefined") as unknown as Refusal;
  const { informer } = follow(cluster);
  await settle();
  expect(informer.getSnapshot().error?.message).toBe("What the API server sent could not be read. The page asks again.");
});

test("what nobody has followed for a minute is forgotten", async () => {
  const cluster = new Cluster();
  cluster.objects = [thing("a")];
  const forgotten = vi.fn();
  const informer = new Informer(things, {}, cluster, forgotten);
  const leave = informer.subscribe(() => undefined);
  await settle();
  leave();
  await vi.advanceTimersByTimeAsync(keptMilliseconds - 1);
  expect(informer.getSnapshot().objects).toHaveLength(1);
  expect(forgotten).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(informer.getSnapshot().objects).toBeUndefined();
  expect(forgotten).toHaveBeenCalledOnce();
});

test("whoever comes back within the minute finds what was known", async () => {
  const cluster = new Cluster();
  cluster.objects = [thing("a")];
  const { informer, leave, names } = follow(cluster);
  await settle();
  leave();
  await vi.advanceTimersByTimeAsync(keptMilliseconds / 2);
  informer.subscribe(() => undefined);
  expect(names()).toEqual(["a"]);
  await vi.advanceTimersByTimeAsync(2 * keptMilliseconds);
  expect(names()).toEqual(["a"]);
});
