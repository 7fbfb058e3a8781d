import { focusManager } from "@tanstack/react-query";
import { act, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import type { Experiment } from "../../types";
import type { CaptureFile } from "./captures";
import CapturesTab from "./CapturesTab";

vi.mock("../../kubernetes/hooks", () => ({ useAccess: () => false, useObjects: () => ({ objects: [], error: undefined }) }));
vi.mock("./PacketList", () => ({ PacketList: ({ file }: { file: CaptureFile }) => <p>{`packets of ${file.bytes} bytes`}</p> }));

afterEach(() => {
  vi.unstubAllGlobals();
  focusManager.setFocused(undefined);
});

test("the first packets of a capture are those of its file as it has grown since", async () => {
  const listed = { files: [{ path: "captures/run/wan/hq.pcapng", bytes: 1000 }] };
  answer({ "/files": listed });
  const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: {}, status: { phase: "Running" } } as unknown as Experiment;
  openPage("/", () => <CapturesTab experiment={experiment} state={undefined} />, "/");
  await userEvent.setup().click(await screen.findByRole("button", { name: "First packets on wan of hq" }));
  expect(screen.getByText("packets of 1000 bytes")).toBeTruthy();
  listed.files = [{ path: "captures/run/wan/hq.pcapng", bytes: 2000 }];
  act(() => {
    focusManager.setFocused(false);
    focusManager.setFocused(true); // the files are listed again at once
  });
  expect(await screen.findByText("packets of 2000 bytes")).toBeTruthy();
});

test("captures that could not be listed are not said to be none", async () => {
  const experiment = (phase: string) => ({ metadata: { name: "amber", namespace: "team", uid: "u" }, spec: {}, status: { phase } }) as unknown as Experiment;
  answer({});
  openPage("/", () => <CapturesTab experiment={experiment("Running")} state={undefined} />, "/");
  await screen.findByText("Captures could not be read");
  expect(screen.queryByText(/^There is no capture\./)).toBeNull();
  openPage("/", () => <CapturesTab experiment={experiment("Queued")} state={undefined} />, "/"); // whose files are not asked for
  expect(await screen.findByText(/^There is no capture\./)).toBeTruthy();
});
