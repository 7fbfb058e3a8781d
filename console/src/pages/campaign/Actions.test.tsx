import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { Campaign } from "../../types";
import { Actions } from "./Actions";

vi.mock("../../kubernetes/hooks", () => ({ useAccess: () => true }));
vi.mock("@tanstack/react-router", () => ({ useNavigate: () => () => undefined }));

function buttonsOf(phase: string, spec: Partial<Campaign["spec"]> = {}, metadata: Partial<Campaign["metadata"]> = {}): string[] {
  const campaign = { metadata: { name: "c", namespace: "team", uid: "u", ...metadata }, spec, status: { phase } } as unknown as Campaign;
  render(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <Actions campaign={campaign} namespace="team" />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return screen.queryAllByRole("button").map((button) => button.textContent);
}

test("a campaign under way can be suspended, and a suspended one resumed", () => {
  expect(buttonsOf("Running")).toEqual(["Suspend", "Runs at once: 1", "Delete"]);
  cleanup();
  expect(buttonsOf("Suspended", { suspend: true })).toEqual(["Resume", "Runs at once: 1", "Delete"]);
});

test("a campaign that has ended can only be deleted", () => {
  for (const phase of ["Succeeded", "Failed"]) {
    expect(buttonsOf(phase)).toEqual(["Delete"]);
    cleanup();
  }
});

test("a campaign with a schedule goes on after each round", () => {
  expect(buttonsOf("Scheduled", { schedule: { cron: "@daily" } })).toEqual(["Suspend", "Runs at once: 1", "Delete"]);
});

test("a campaign that is being deleted has no buttons", () => {
  expect(buttonsOf("Running", {}, { deletionTimestamp: "2026-01-01T00:00:00Z" })).toEqual([]);
});
