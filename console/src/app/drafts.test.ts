import { beforeEach, expect, test } from "vitest";
import { Draft } from "./drafts";

const isText = (value: unknown): value is string => typeof value === "string";
const at = (user: string, address: string) => new Draft(user, address, isText);

beforeEach(() => {
  window.sessionStorage.clear();
});

test("a draft is kept for its user and its address only", () => {
  at("ann", "/new").keep("a");
  expect([at("ann", "/new").read(), at("bob", "/new").read(), at("ann", "/scenarios/edit").read()]).toEqual(["a", undefined, undefined]);
  at("ann", "/new").discard();
  expect(at("ann", "/new").read()).toBeUndefined();
});

test("what another version of the page has kept is left aside", () => {
  new Draft("ann", "/new", (value): value is object => typeof value === "object").keep({ text: "a" });
  expect(at("ann", "/new").read()).toBeUndefined();
});

test("a draft for which there is no room is told, and no old one is left in its place", () => {
  at("ann", "/new").keep("old");
  const full = { getItem: (key: string) => window.sessionStorage.getItem(key), setItem: () => { throw new DOMException("full", "QuotaExceededError"); }, removeItem: (key: string) => { window.sessionStorage.removeItem(key); } } as unknown as Storage;
  const draft = new Draft("ann", "/new", isText, full);
  draft.keep("new");
  expect(draft.isFull()).toBe(true);
  expect(draft.read()).toBeUndefined();
});
