import { renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Draft, useKept } from "./drafts";

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

afterEach(() => {
  vi.useRealTimers();
});

function typing(draft: Draft<string>) {
  vi.useFakeTimers();
  const write = vi.spyOn(draft, "keep");
  return { ...renderHook((text: string) => useKept(draft, text), { initialProps: "a" }), write };
}

test("what is typed is kept once it rests", () => {
  const { rerender, write } = typing(at("ann", "/new"));
  for (const text of ["ab", "abc", "abcd"]) {
    rerender(text);
    vi.advanceTimersByTime(100);
  }
  expect(write).not.toHaveBeenCalled();
  vi.advanceTimersByTime(300);
  expect(write.mock.calls).toEqual([["abcd"]]);
});

test.each([
  ["the page is left", () => window.dispatchEvent(new Event("pagehide"))],
  ["another page is shown", (unmount: () => void) => { unmount(); }],
])("what was just typed is kept when %s", (_, leave) => {
  const { unmount } = typing(at("ann", "/new"));
  leave(unmount);
  expect(at("ann", "/new").read()).toBe("a");
});

test("what is discarded is not kept later", () => {
  const draft = at("ann", "/new");
  const { unmount } = typing(draft);
  draft.discard();
  vi.advanceTimersByTime(1000);
  unmount();
  expect(draft.read()).toBeUndefined();
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
