// @vitest-environment node
import { expect, test } from "vitest";
import { questionOf } from "./question";

const asked = { text: "kind: Scenario", platforms: [1, 2], at: 5, limit: 121, from: 1, to: 2 };

test("nothing is asked of a scenario without platforms, which the server would refuse", () => {
  expect(questionOf({ ...asked, platforms: [] })).toBeUndefined();
  expect(questionOf({ ...asked, text: "" })).toBeUndefined();
});

test("the pair is one of two platforms that the same text has", () => {
  expect(questionOf(asked)?.query).toEqual({ at: 5, limit: 121, pair: [1, 2] });
  expect(questionOf({ ...asked, to: 3 })?.query.pair).toBeUndefined();
  expect(questionOf({ ...asked, to: 1 })?.query.pair).toBeUndefined();
  expect(questionOf({ ...asked, platforms: undefined, to: 3 })?.query.pair).toEqual([1, 3]);
});
