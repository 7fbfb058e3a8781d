import { screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import type { Experiment } from "../../types";
import LogsTab from "./LogsTab";

afterEach(() => {
  vi.unstubAllGlobals();
});

function open(phase: "Queued" | "Provisioning", answers: Record<string, unknown> = { "/files": { files: [] } }): string[] {
  const asked = answer(answers);
  const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: {}, status: { phase } } as unknown as Experiment;
  openPage("/", () => <LogsTab experiment={experiment} state={undefined} />, "/");
  return asked;
}

test("the archive is not asked for the logs of a run that waits for room", async () => {
  const asked = open("Queued");
  await screen.findByText("Logs begin when the nodes are up.");
  expect(asked).toEqual([]);
});

test("the archive is asked for the logs of a run that has room", async () => {
  const asked = open("Provisioning");
  await screen.findByText("There are no logs yet.");
  expect(asked).toHaveLength(1);
});

test("logs that could not be listed are not said to be none", async () => {
  open("Provisioning", {});
  await screen.findByText("The list of logs could not be read");
  expect(screen.queryByText("There are no logs yet.")).toBeNull();
});
