import { beforeEach, expect, test, vi } from "vitest";
import { takeTab, tabStorage } from "./tab";

beforeEach(() => {
  window.sessionStorage.clear();
  window.localStorage.clear();
});

test("a user who logs in again finds what the tab has kept", () => {
  takeTab("anna");
  tabStorage.setItem("draft", "a");
  takeTab("anna");
  expect(tabStorage.getItem("draft")).toBe("a");
});

test("another user finds nothing of the one before, whose session may have ended by itself", () => {
  takeTab("anna");
  tabStorage.setItem("draft", "a");
  takeTab("bert");
  expect(tabStorage.getItem("draft")).toBeNull();
});

test("the browser has the namespaces of the present user only", () => {
  window.localStorage.setItem("vignette-namespaces", '["team-alpha"]');
  window.localStorage.setItem("vignette-namespaces-of", JSON.stringify({ anna: ["team-alpha"], bert: ["team-bravo"] }));
  takeTab("bert");
  expect(Object.entries(window.localStorage)).toEqual([["vignette-namespaces-of", '{"bert":["team-bravo"]}']]);
  takeTab("vera");
  expect(window.localStorage.length).toBe(0);
});

test("what a page adds after its user has left is not kept", async () => {
  vi.resetModules();
  const tab = await import("./tab");
  tab.tabStorage.setItem("samples", "1");
  tab.leaveTab();
  tab.tabStorage.setItem("samples", "2");
  expect(window.sessionStorage.length).toBe(0);
});
