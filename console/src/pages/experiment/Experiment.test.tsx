import { screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { answer, openPage } from "../../testing/page";
import { Experiment } from "./Experiment";

const held = vi.hoisted((): { object: unknown; absent: boolean; error: unknown } => ({ object: undefined, absent: false, error: undefined }));

vi.mock("../../kubernetes/hooks", () => ({ useObject: () => held, useObjects: () => ({ objects: [], error: undefined }), useAccess: () => false, useRight: () => ({ allowed: false, error: null }) }));

afterEach(() => {
  vi.unstubAllGlobals();
  Object.assign(held, { object: undefined, absent: false, error: undefined });
});

test("an experiment that waits, and whose connection was lost, is said not to be current", async () => {
  held.object = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { networks: [], apps: [], nodes: [] }, status: { phase: "Queued" } };
  held.error = new Refusal(0, "The console does not answer.");
  answer({});
  openPage("/ns/$namespace/experiments/$name", Experiment, "/ns/team/experiments/amber");
  expect(await screen.findByText("What is shown is not current")).toBeTruthy();
  expect(screen.getByText(/^Waits in the queue/)).toBeTruthy();
});

test("the archive is not asked for an experiment that was stopped while it waited", async () => {
  held.object = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { networks: [], apps: [], nodes: [] }, status: { phase: "Failed", message: "stopped before it started, by spec.stop: nothing was measured" } };
  const asked = answer({});
  openPage("/ns/$namespace/experiments/$name", Experiment, "/ns/team/experiments/amber");
  expect(await screen.findByText(/^stopped before it started/)).toBeTruthy();
  await screen.findByRole("tab", { name: "Overview" });
  expect(asked.filter((url) => url.includes("/runs/"))).toEqual([]);
  expect(screen.queryByText("Live figures could not be read")).toBeNull();
});

test("the page of a deleted experiment leads to its archived runs, and to all experiments", async () => {
  held.absent = true;
  answer({ "/runs": [{ namespace: "team", name: "amber", uid: "u", phase: "Succeeded", t0: "2026-11-27T07:24:18Z", bytes: 3 * 2 ** 20 }, { namespace: "team", name: "blue", uid: "b", phase: "Succeeded" }] });
  openPage("/ns/$namespace/experiments/$name", Experiment, "/ns/team/experiments/amber");
  expect((await screen.findByRole("link", { name: "Run u" })).getAttribute("href")).toBe("/ns/team/runs/u");
  expect(screen.getByRole("listitem").textContent).toBe("Run u, T0 2026-11-27 07:24:18Z, 3.00 MiB");
  expect(screen.queryByRole("link", { name: "Run b" })).toBeNull();
  expect(screen.getByRole("link", { name: "All experiments" }).getAttribute("href")).toBe("/");
});

test("an experiment that there never was is not said to be deleted", async () => {
  held.absent = true;
  answer({ "/runs": [] });
  openPage("/ns/$namespace/experiments/$name", Experiment, "/ns/team/experiments/amber");
  expect(await screen.findByText("The archive has no run of it.")).toBeTruthy();
  expect(screen.queryByText(/deleted/)).toBeNull();
});
