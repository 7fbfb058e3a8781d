import { cleanup, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import type { Comparison } from "../../archive/comparison";
import { answer, openPage } from "../../testing/page";
import { Compare } from "./Compare";

const comparison = JSON.parse(readFileSync("src/testing/data/comparison.json", "utf8")) as Comparison;
const [one, two] = comparison.runs as [Comparison["runs"][number], Comparison["runs"][number]];
const summaries = [one, two].map(({ namespace, experiment, uid }) => ({ namespace, name: experiment, uid, phase: "Succeeded" }));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

test("what differs comes before what was measured", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  const differs = await screen.findByRole("table", { name: "What differs in the specification" });
  expect(within(differs).getByText("apps.service.messaging.via")).toBeTruthy();
  const side = screen.getByRole("table", { name: "Runs side by side" });
  expect(differs.compareDocumentPosition(side) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
  expect(screen.getByRole("table", { name: "Differences of group radio" }).textContent).toContain("+3.20 s [+296 ms, +18.8 s]");
});

test("runs that are chosen from the list stand in the address", async () => {
  answer({ "/compare": comparison, "/runs": summaries, "/session": { namespace: "e5" } });
  const router = openPage("/compare", Compare, "/compare");
  const user = userEvent.setup();
  await user.click(await screen.findByLabelText(`Compare ${one.experiment}`));
  await user.click(await screen.findByLabelText(`Compare ${two.experiment}`));
  expect(router.state.location.searchStr).toBe(`?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByRole("table", { name: "Runs side by side" })).toBeTruthy();
});

test("a comparison that the server refuses says why", async () => {
  answer({ "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByText(/^nothing at .*compare$/)).toBeTruthy();
});

test("a run whose record is refused does not stay in reading", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByText(new RegExp(`^nothing at .*${one.uid}$`))).toBeTruthy();
  expect(screen.queryByText("The records of the runs are being read.")).toBeNull();
});
