import { fireEvent, screen, waitFor } from "@testing-library/react";
import type { ComponentType } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import type { Experiment } from "../../types";
import EventsTab from "./EventsTab";
import LogsTab from "./LogsTab";
import NodesTab from "./NodesTab";
import type { TabProps } from "./tab";

vi.mock("../../kubernetes/hooks", () => ({ useObjects: () => ({ objects: [], error: undefined }) }));

afterEach(() => {
  vi.unstubAllGlobals();
});

const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { networks: [], apps: [], nodes: [] }, status: { phase: "Succeeded" } } as unknown as Experiment;

test.each<[string, ComponentType<TabProps>, string, string]>([
  ["nodes", NodesTab, "Filter nodes", "findNodes"],
  ["events", EventsTab, "Filter events", "findEvents"],
  ["logs", LogsTab, "Search", "findLines"],
])("the filter of %s stands in the address, and comes from it", async (_, Tab, label, parameter) => {
  answer({ "/files": { files: [{ path: "logs/hq/bft/stdout-1.log", bytes: 6 }] }, "/stdout-1.log": "hello\n" });
  const router = openPage("/", () => <Tab experiment={experiment} state={undefined} />, `/?${parameter}=hq`);
  const field = await screen.findByLabelText<HTMLInputElement>(label);
  expect(field.value).toBe("hq");
  fireEvent.change(field, { target: { value: "veh" } });
  await waitFor(() => { expect(router.state.location.search).toEqual({ [parameter]: "veh" }); });
});
