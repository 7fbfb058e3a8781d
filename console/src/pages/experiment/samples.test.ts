// @vitest-environment node
import { expect, test } from "vitest";
import type { LiveFigures, RunState } from "../../archive/types";
import { forgetOldest, Samples } from "./samples";

function state(sent: number, live: Partial<LiveFigures> = {}): RunState {
  return { counters: { sent, received: sent / 2, triggered: 0, processed: 0 }, sealed: false, live: { offered: 0, delaySeconds: null, queueFrames: 3, ...live } } as unknown as RunState;
}

function storage() {
  const items = new Map<string, string>();
  return { items, getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, value: string) => void items.set(key, value) };
}

test("rates are of the time since the sample before", () => {
  const samples = new Samples("k", undefined);
  samples.add(1_000, state(10));
  samples.add(3_000, state(30, { offered: 40, received: 10 }));
  expect(samples.snapshot().at(0)).toMatchObject({ sentPerSecond: null, deliveredPercent: null });
  expect(samples.snapshot().at(1)).toMatchObject({ sentPerSecond: 10, receivedPerSecond: 5, deliveredPercent: 25, queue: 3 });
});

test("the volume of each network is that of the time since the sample before", () => {
  const samples = new Samples("k", undefined);
  const network = (name: string, bytesSent: number) => ({ name, bytesSent, framesSent: 0, framesReceived: 0, bytesReceived: 0 });
  samples.add(1_000, state(10, { networks: [network("vhf", 1000)] }));
  samples.add(3_000, state(30, { networks: [network("uhf", 64), network("vhf", 1500)] }));
  samples.add(5_000, state(30, { networks: [network("uhf", 64), network("vhf", 1500)] }));
  expect(samples.snapshot().map((s) => s.volume)).toEqual([{}, { vhf: 250 }, { uhf: 0, vhf: 0 }]);
});

test("an answer that is added twice is one sample, and an equal answer later is another", () => {
  const samples = new Samples("k", undefined);
  const answer = state(10);
  for (const at of [1_000, 1_000, 3_000, 3_000]) samples.add(at, answer);
  samples.add(5_000, state(30));
  expect(samples.snapshot().map((s) => [s.at, s.sentPerSecond])).toEqual([
    [1, null],
    [3, 0],
    [5, 10],
  ]);
});

test("only the newest samples are kept", () => {
  const samples = new Samples("k", undefined, 5);
  for (let i = 1; i <= 50; i++) samples.add(1000 * i, state(i));
  expect(samples.snapshot().map((s) => s.at)).toEqual([46, 47, 48, 49, 50]);
});

test("a pause is drawn as one, and has no rate", () => {
  const samples = new Samples("k", undefined);
  samples.add(1_000, state(10));
  samples.add(101_000, state(1000));
  expect(samples.snapshot().map((s) => [s.at, s.queue, s.sentPerSecond])).toEqual([
    [1, 3, null],
    [51, null, null],
    [101, 3, null],
  ]);
});

test("samples survive a reload", () => {
  const kept = storage();
  const before = new Samples("k", kept);
  before.add(9_000, state(10, { networks: [{ name: "vhf", bytesSent: 0, framesSent: 0, framesReceived: 0, bytesReceived: 0 }] }));
  before.add(20_000, state(10, { networks: [{ name: "vhf", bytesSent: 1100, framesSent: 1, framesReceived: 0, bytesReceived: 0 }] }));
  expect(before.snapshot().at(-1)?.volume).toEqual({ vhf: 100 });
  expect(new Samples("k", kept).snapshot()).toEqual(before.snapshot());
});

test("the browser keeps the samples of the newest runs only, and nothing else is removed", () => {
  const items = new Map([["vignette-draft a", "d"], ["vignette.samples.broken", "{"]]);
  for (const [uid, at] of [["b", 2], ["c", 3], ["a", 1]] as const) items.set(`vignette.samples.${uid}`, JSON.stringify([[at, 0, 0, 0, 0, 0, 0, {}]]));
  forgetOldest({ length: items.size, key: (i) => [...items.keys()][i] ?? null, getItem: (key) => items.get(key) ?? null, removeItem: (key) => void items.delete(key) }, 2);
  expect([...items.keys()]).toEqual(["vignette-draft a", "vignette.samples.b", "vignette.samples.c"]);
});

test("what the browser has kept may be broken", () => {
  for (const broken of ["", "{", "null", "[1]", '[["x"]]', "[[1,{}]]", "[[1,0,0,0,0,0,0]]", '[[1,0,0,0,0,0,0,{"vhf":"x"}]]', '{"a":1}']) {
    const kept = storage();
    kept.items.set("k", broken);
    expect(new Samples("k", kept).snapshot()).toEqual([]);
  }
});

test("a run whose logs are complete adds nothing", () => {
  const samples = new Samples("k", undefined);
  samples.add(1_000, { ...state(1), sealed: true, live: undefined } as unknown as RunState);
  expect(samples.snapshot()).toEqual([]);
});
