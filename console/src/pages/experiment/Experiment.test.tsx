import { screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { answer, openPage } from "../../testing/page";
import { Experiment } from "./Experiment";

const held = vi.hoisted((): { object: unknown; absent: boolean; error: unknown } => ({ object: undefined, absent: false, error: undefined }));

vi.mock("../../kubernetes/hooks", () => ({ useObject: () => held, useObjects: () => ({ objects: [], error: undefined }), useAccess: () => false, useRight: () => ({ allowed: false, error: null }) }));

afterEach(() => {
  vi.unstubAllGlobals();
});

test("an experiment that waits, and whose connection was lost, is said not to be current", async () => {
  held.object = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { networks: [], apps: [], nodes: [] }, status: { phase: "Queued" } };
  held.error = new Refusal(0, "The console does not answer.");
  answer({});
  openPage("/ns/$namespace/experiments/$name", Experiment, "/ns/team/experiments/amber");
  expect(await screen.findByText("What is shown is not current")).toBeTruthy();
  expect(screen.getByText(/^Waits in the queue/)).toBeTruthy();
});
