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
