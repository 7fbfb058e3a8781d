import { renderHook } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { draftOf, mayKeep, useKeeping } from "./draft";

const draft = draftOf("ann", "empty");

beforeEach(() => {
  window.sessionStorage.clear();
});

function keep(text: string, namespace?: string): string {
  const { result, unmount } = renderHook(() => useKeeping(draft, text, namespace, ["as it came", "with a free name"]));
  unmount();
  return result.current;
}

test("a text that was changed is there again after a reload of the page", () => {
  expect(keep("changed", "team")).toBe("");
  expect(draftOf("ann", "empty").read()).toEqual({ text: "changed", namespace: "team" });
  expect(draftOf("ann", "run:team/a").read()).toBeUndefined();
});

test("a text that nobody has changed is no draft, and what goes back to it ends one", () => {
  keep("changed");
  keep("with a free name");
  expect(draft.read()).toBeUndefined();
  keep("changed");
  keep("as it came");
  expect(draft.read()).toBeUndefined();
});

test("a Secret is never kept, and the page says so", () => {
  keep("changed");
  expect(keep("changed\n---\nkind: Secret\nstringData: {password: swordfish}\n")).toContain("not kept");
  expect(Object.values(window.sessionStorage).join()).not.toContain("swordfish");
});

test.each([
  "kind: Secret",
  "kind: Secret # of a broker",
  "{kind: Secret}",
  'kind: "Secret"\nbroken: [',
  "kind: 'Secret'",
  '{"apiVersion":"v1","kind":"Secret","stringData":{"password":"swordfish"}}',
  "kind: List\nitems:\n- kind: Secret\n  apiVersion: v1",
  "kind: List\nitems: [{apiVersion: v1, kind: Secret}]",
  "kind: !!str Secret",
  "kind: &a Secret",
  "kind: !!str &a Secret",
  "kind:\n  Secret",
  "kind: # of a broker\n  Secret",
  "kind: >-\n  Secret",
  "a: &a Secret\nkind: *a",
  "# kind: Secret",
])("%j may be a Secret, and is not kept", (text) => {
  expect(mayKeep(text)).toBe(false);
});

test.each(["kind: Experiment", "# a kind of Secret", "kind: SecretKeeper", "mankind: Secret", "spec:\n  secretRef: {name: Secret}"])("%j has no Secret", (text) => {
  expect(mayKeep(text)).toBe(true);
});
