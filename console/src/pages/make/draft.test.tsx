import { renderHook } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { draftOf, mayKeep, useKeeping } from "./draft";

const draft = draftOf("ann", "empty");

beforeEach(() => {
  window.sessionStorage.clear();
});

function keep(text: string, namespace?: string): string {
  return renderHook(() => useKeeping(draft, text, namespace, ["as it came", "with a free name"])).result.current;
}

test("a text that was changed is there again after the page was loaded anew", () => {
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
  expect(["kind: Experiment", "# a kind of Secret", "{kind: Secret}", 'kind: "Secret"\nbroken: [', "kind: SecretKeeper"].map(mayKeep)).toEqual([true, true, false, false, true]);
});
