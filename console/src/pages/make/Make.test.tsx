import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import { Make } from "./Make";

vi.mock("../../kubernetes/hooks", () => ({ useObjects: () => ({ objects: [], error: undefined }), useObjectsIn: () => ({ objects: [], error: undefined }), useRight: () => ({ allowed: true, error: null }), useAccess: () => true }));

vi.mock("./text/Editor", () => ({ Editor: () => null })); // jsdom has no layout, which it measures

afterEach(() => {
  vi.unstubAllGlobals();
});

const cluster = { "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/validate": { valid: true, findings: [] }, "/forecast": { normal: "" } };

test("the page says in which line the text has a mistake, and which", async () => {
  answer({ ...cluster, "/bft.yaml": "kind: Experiment\nspec:\n  seed: *drawn\n" });
  openPage("/new", Make, "/new?from=library:bft.yaml");
  expect(await screen.findByText("Line 3 of the YAML: *drawn has no anchor &drawn before it. The form shows what stood there before.")).toBeTruthy();
});

test("the part beside the text stands in the address", async () => {
  answer(cluster);
  const router = openPage("/new", Make, "/new?from=empty&part=preview");
  expect(await screen.findByText("Commands that do the same")).toBeTruthy();
  fireEvent.click(screen.getByRole("tab", { name: "Matrix" }));
  await waitFor(() => { expect(router.state.location.search).toEqual({ from: "empty", part: "matrix" }); });
  expect(await screen.findByRole("button", { name: "Make it a campaign" })).toBeTruthy();
});
