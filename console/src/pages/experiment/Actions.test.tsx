import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { Access } from "../../kubernetes/client";
import type { Experiment } from "../../types";
import { Actions } from "./Actions";

const rights = vi.hoisted(() => ({ verbs: [] as string[] }));

vi.mock("../../kubernetes/hooks", () => ({ useAccess: ({ verb }: Access) => rights.verbs.includes(verb) }));
vi.mock("@tanstack/react-router", () => ({
  Link: ({ children }: { children: React.ReactNode }) => <a href="#there">{children}</a>,
  useNavigate: () => () => undefined,
}));

function buttonsOf(status: Experiment["status"], verbs: string[], stop = false, metadata: Partial<Experiment["metadata"]> = {}): string[] {
  rights.verbs = verbs;
  const experiment = { metadata: { name: "<b>e</b>", namespace: "team", uid: "u", ...metadata }, spec: { stop }, ...(status && { status }) } as unknown as Experiment;
  render(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <Actions experiment={experiment} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return [...screen.queryAllByRole("link"), ...screen.queryAllByRole("button")].map((button) => button.textContent);
}

const running = { phase: "Running", t0: "2026-01-01T00:00:00Z" } as const;

test("who may only look sees no button that would be refused", () => {
  expect(buttonsOf(running, ["get"])).toEqual(["Results"]);
});

test("who may do everything can stop, clone and delete", () => {
  expect(buttonsOf(running, ["patch", "create", "delete"])).toEqual(["Results", "Clone", "Stop", "Delete"]);
});

test("what has ended, or is stopping, cannot be stopped", () => {
  expect(buttonsOf({ ...running, phase: "Succeeded" }, ["patch"])).toEqual(["Results"]);
  expect(buttonsOf(running, ["patch"], true).at(-1)).toBe("Is stopping");
});

test("before T0 there are no results to open", () => {
  expect(buttonsOf({ phase: "Queued" }, ["patch"])).toEqual(["Stop"]);
});

test("what is being deleted can be neither stopped nor deleted", () => {
  expect(buttonsOf(running, ["patch", "create", "delete"], false, { deletionTimestamp: "2026-01-01T00:01:00Z" })).toEqual(["Results", "Clone"]);
});

test("before T0 deleting loses no results, and stopping is no way to get some", async () => {
  buttonsOf({ phase: "Queued" }, ["delete"]);
  fireEvent.click(screen.getByRole("button", { name: "Delete" }));
  const words = (await screen.findByRole("dialog")).textContent;
  expect(words).toContain("nothing was measured");
  expect(words).not.toContain("Stop it instead");
});
