import { expect, test } from "vitest";
import { isNamespace, namespacesOf } from "./scope";

test("the namespaces of a user are those he named, once each", () => {
  expect(namespacesOf("nor", undefined, "prt", "nor", "")).toEqual(["nor", "prt"]);
});

test("what cannot be a namespace is not asked for", () => {
  expect([isNamespace("team-nor"), isNamespace("Team"), isNamespace("a/b"), isNamespace("")]).toEqual([true, false, false, false]);
});
