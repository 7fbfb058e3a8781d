import { screen } from "@testing-library/react";
import { readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { answer, openPage } from "../../testing/page";
import { Campaign } from "./Campaign";

const held = vi.hoisted((): { object: unknown; absent: boolean; error: unknown } => ({ object: undefined, absent: false, error: undefined }));

vi.mock("../../kubernetes/hooks", () => ({ useObject: () => held, useAccess: () => false }));

afterEach(() => {
  vi.unstubAllGlobals();
  Object.assign(held, { object: undefined, absent: false, error: undefined });
});

test("a campaign whose connection was lost is shown, and said not to be current", async () => {
  held.object = JSON.parse(readFileSync("src/testing/data/campaign.json", "utf8"));
  held.error = new Refusal(0, "The console does not answer.");
  answer({});
  openPage("/ns/$namespace/campaigns/$name", Campaign, "/ns/e5/campaigns/e5");
  expect(await screen.findByText("What is shown is not current")).toBeTruthy();
  expect(screen.getByText("The console does not answer.")).toBeTruthy();
  expect(screen.getByRole("heading", { level: 1, name: "e5" })).toBeTruthy();
});

test("the bar of a campaign is as full as runs are done", async () => {
  const campaign = JSON.parse(readFileSync("src/testing/data/campaign.json", "utf8")) as { status: { counts: unknown } };
  campaign.status.counts = { total: 2, succeeded: 0, failed: 0, running: 1, pending: 1 };
  held.object = campaign;
  answer({});
  openPage("/ns/$namespace/campaigns/$name", Campaign, "/ns/e5/campaigns/e5");
  await screen.findByText(/^2 runs: 0 succeeded, 0 failed, 1 under way/);
  const full = [...document.querySelectorAll<HTMLElement>(".mantine-Progress-section")].map((part) => Number.parseFloat(part.style.getPropertyValue("--progress-section-size")));
  expect(full.reduce((sum, width) => sum + width, 0)).toBe(0);
});

function openAbsent(answers: Record<string, unknown>): void {
  held.absent = true;
  answer(answers);
  openPage("/ns/$namespace/campaigns/$name", Campaign, "/ns/e5/campaigns/e5");
}

test("a campaign that there never was is not said to be deleted", async () => {
  openAbsent({ "/runs": [] });
  expect(await screen.findByText("The archive has no run of it.")).toBeTruthy();
  expect(screen.getByText("There is no campaign e5 in namespace e5")).toBeTruthy();
  expect(screen.queryByText(/deleted|of this round/)).toBeNull();
});

test("a deleted campaign has its runs from the archive", async () => {
  openAbsent({ "/runs": [{ namespace: "e5", name: "e5-p-1", uid: "u", phase: "Failed", campaign: { name: "e5", uid: "c", round: 1, point: "p" } }] });
  expect(await screen.findByText("It was deleted. Its runs are read from the archive.")).toBeTruthy();
  expect(screen.getByRole("link", { name: "e5-p-1" }).getAttribute("href")).toBe("/ns/e5/runs/u");
});

test("of a campaign whose archive cannot be listed nothing is said to be missing", async () => {
  openAbsent({});
  expect(await screen.findByText("The archive's runs could not be listed")).toBeTruthy();
  expect(screen.queryByText(/The archive has no run|deleted|of this round/)).toBeNull();
});
