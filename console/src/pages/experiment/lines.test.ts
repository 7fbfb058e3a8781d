// @vitest-environment node
import { expect, test } from "vitest";
import { Follower } from "./follow";
import { Lines, matching, timeOf } from "./lines";

const texts = (lines: Lines) => lines.snapshot().map((line) => line.text);

test("lines come together from pieces that end anywhere", () => {
  const whole = "one\ntwo\n\nthree";
  for (let cut = 0; cut <= whole.length; cut++) {
    const lines = new Lines(10);
    lines.add(whole.slice(0, cut));
    lines.add(whole.slice(cut));
    lines.end();
    expect(texts(lines)).toEqual(["one", "two", "", "three"]);
  }
});

test("the rest of a line in which reading began is left out", () => {
  const lines = new Lines(10, true);
  lines.add("lf\nwhole\n");
  expect(texts(lines)).toEqual(["whole"]);
});

test("the newest lines are kept, and the others counted", () => {
  const lines = new Lines(5);
  for (let i = 0; i < 100; i++) lines.add(`${i}\n`);
  expect(texts(lines)).toEqual(["95", "96", "97", "98", "99"]);
  expect(lines.forgotten).toBe(95);
});

test("a line without an end does not grow for ever", () => {
  const lines = new Lines(5);
  for (let i = 0; i < 30; i++) lines.add("x".repeat(100_000));
  lines.end();
  expect(texts(lines)[0]?.length).toBeLessThan(5000);
});

test("times are read from logs of the platform and of others", () => {
  expect(timeOf('{"ts":1795765047645129313,"event":"ready"}')).toBeCloseTo(1795765047645.129, 2);
  expect(timeOf("2026-11-27T07:00:00.5Z started")).toBe(Date.parse("2026-11-27T07:00:00.5Z"));
  expect(["12 things", "{}", "2026-99-99T07:00:00Z x"].map(timeOf)).toEqual([undefined, undefined, undefined]);
});

test("a search finds lines with every word", () => {
  expect(matching(["Alpha beta", "alpha", "beta"], "BETA alpha", (line) => line)).toEqual(["Alpha beta"]);
});

function streamOf(...pieces: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

const source = { namespace: "n", uid: "u", path: "logs/a/b/output.log", offset: 0, follows: true };

test("a log that ends says so", async () => {
  const follower = new Follower(source, () => Promise.resolve(streamOf("é\nla", "st")));
  await new Promise<void>((resolve) => follower.subscribe(resolve));
  expect(follower.snapshot()).toMatchObject({ ended: true, error: undefined });
  expect(follower.snapshot().lines.map((line) => line.text)).toEqual(["é", "last"]);
});

test("a log that cannot be read says why", async () => {
  const follower = new Follower(source, () => Promise.reject(new Error("no such file")));
  await new Promise<void>((resolve) => follower.subscribe(resolve));
  expect(follower.snapshot().error).toEqual(new Error("no such file"));
});

test("the stream ends with its last listener", () => {
  let signal: AbortSignal | undefined;
  const follower = new Follower(source, (_, given) => {
    signal = given;
    return new Promise(() => undefined);
  });
  const leave = follower.subscribe(() => undefined);
  expect(signal?.aborted).toBe(false);
  leave();
  expect(signal?.aborted).toBe(true);
});
