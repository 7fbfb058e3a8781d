// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { Follower } from "./follow";
import { Lines, matching, timeOf } from "./lines";

afterEach(() => {
  vi.useRealTimers();
});

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

test("the first lines are kept where they are wanted, however many come at once", () => {
  const lines = new Lines(5, false, true);
  for (let i = 0; i < 20; i += 4) lines.add(`${i}\n${i + 1}\n${i + 2}\n${i + 3}\n`);
  expect(texts(lines)).toEqual(["0", "1", "2", "3", "4"]);
  expect([lines.isFull, lines.forgotten]).toEqual([true, 0]);
});

test("long lines are kept up to a bound, also those that are cut", () => {
  for (const length of [1000, 20_000]) {
    const lines = new Lines(1000, false, false, 100_000);
    for (let i = 0; i < 500; i++) lines.add("x".repeat(length) + "\n");
    expect(lines.snapshot().length).toBeGreaterThanOrEqual(100_000 / length);
    expect(lines.snapshot().length).toBeLessThanOrEqual(120_000 / length);
    expect(lines.forgotten + lines.snapshot().length).toBe(500);
  }
});

test("the newest line is kept, however long it is", () => {
  const lines = new Lines(1000, false, false, 10);
  for (const text of ["first", "a long line"]) lines.add(`${text}\n`);
  expect(texts(lines)).toEqual(["a long line"]);
});

test("the first lines are kept until there is no room for more characters", () => {
  const lines = new Lines(1000, false, true, 10);
  for (const text of ["12345", "123456789", "1"]) lines.add(`${text}\n`);
  expect(texts(lines)).toEqual(["12345", "123456789"]);
  expect([lines.isFull, lines.forgotten]).toEqual([true, 0]);
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

/** reads a log until its state is as wanted. */
function reads(follower: Follower, isWanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const leave = follower.subscribe(() => {
      if (!isWanted()) return;
      leave();
      resolve();
    });
  });
}

function textsOf(follower: Follower): string[] {
  return follower.snapshot().lines.map((line) => line.text);
}

test("a log of a run that is over is read once, and says that it is complete", async () => {
  const follower = new Follower({ ...source, follows: false }, () => Promise.resolve(streamOf("é\nla", "st")));
  await reads(follower, () => follower.snapshot().ended);
  expect(follower.snapshot().error).toBeNull();
  expect(textsOf(follower)).toEqual(["é", "last"]);
});

test("a log that grows is read on where it ended before, and its last line waits for its end", async () => {
  vi.useFakeTimers();
  const asked: number[] = [];
  const follower = new Follower(source, ({ offset }) => {
    asked.push(offset);
    return Promise.resolve(streamOf(asked.length === 1 ? "é\nla" : "st\n"));
  });
  const read = reads(follower, () => textsOf(follower).includes("last"));
  await vi.advanceTimersByTimeAsync(3000);
  await read;
  expect(asked).toEqual([0, 5]);
  expect(textsOf(follower)).toEqual(["é", "last"]);
});

test.each([true, false])("a long log that is read from its start ends with the first lines, also if it grows: %s", async (follows) => {
  let asked = 0;
  let pulled = 0;
  let cancelled = false;
  const long = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode("one\ntwo\n"));
      if (++pulled === 100) controller.close();
    },
    cancel() { cancelled = true; },
  });
  const follower = new Follower({ ...source, follows, keepsFirst: true }, () => {
    asked++;
    return Promise.resolve(long);
  }, 3);
  await reads(follower, () => follower.snapshot().lines.length > 0);
  expect(follower.snapshot()).toMatchObject({ ended: false, error: null, forgotten: 0 });
  expect(textsOf(follower)).toEqual(["one", "two", "one"]);
  expect([asked, cancelled]).toEqual([1, true]);
});

test("a log that has not begun is no trouble while the run goes on", async () => {
  vi.useFakeTimers();
  let asked = 0;
  const follower = new Follower(source, () => (++asked < 3 ? Promise.reject(new Refusal(404, "The run has no such file.")) : Promise.resolve(streamOf("first\n"))));
  const errors: unknown[] = [];
  const read = reads(follower, () => errors.push(follower.snapshot().error) > 0 && textsOf(follower).length > 0);
  await vi.advanceTimersByTimeAsync(4000);
  await read;
  expect(errors).toEqual([null]);
});

test("a log that breaks off says why, and goes on at that byte when it can be read again", async () => {
  vi.useFakeTimers();
  const pieces = ["first\nsec"];
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.pop();
      if (piece === undefined) controller.error(new Error("broken off"));
      else controller.enqueue(new TextEncoder().encode(piece));
    },
  });
  const asked: number[] = [];
  const follower = new Follower(source, ({ offset }) => {
    asked.push(offset);
    if (asked.length === 2) return Promise.reject(new Refusal(503, "The server starts."));
    return Promise.resolve(asked.length === 1 ? broken : streamOf("ond\n"));
  });
  const errors: (string | undefined)[] = [];
  const read = reads(follower, () => {
    errors.push(follower.snapshot().error?.message);
    return textsOf(follower).includes("second");
  });
  await vi.advanceTimersByTimeAsync(5000);
  await read;
  expect(asked.slice(0, 3)).toEqual([0, 9, 9]);
  expect(errors[0]).toBe("The connection ended within the answer. Read it again.");
  expect(errors).toContain("The server starts.");
  expect(errors.at(-1)).toBeUndefined();
});

test("a log is read until its last listener leaves", () => {
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
