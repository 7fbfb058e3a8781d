// @vitest-environment node
import { expect, test } from "vitest";
import { Refusal } from "../kubernetes/client";
import { askAgainAfter } from "./polling";

test("what a server refuses is asked for less often, and what it may answer soon is not", () => {
  const pauses = [null, new Refusal(0, "no answer"), new Refusal(502, "no archive"), new Refusal(404, "no such run"), new Refusal(403, "no right")].map((error) => askAgainAfter(error, 2_000));
  expect(pauses).toEqual([2_000, 2_000, 2_000, 10_000, 30_000]);
});

test("no refusal makes questions more frequent than usual", () => {
  expect(askAgainAfter(new Refusal(404, "no such run"), 15_000)).toBe(15_000);
});
