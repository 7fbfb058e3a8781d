import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import { Make } from "./Make";

vi.mock("../../kubernetes/hooks", () => ({ useObjects: () => ({ objects: [], error: undefined }), useObjectsIn: () => ({ objects: [], error: undefined }), useRight: () => ({ allowed: true, error: null }), useAccess: () => true }));

vi.mock("./text/Editor", () => ({ Editor: () => null })); // jsdom has no layout, which it measures

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const cluster = { "/session": { mode: "local", user: "ann", groups: [], namespace: "team" }, "/validate": { valid: true, findings: [] }, "/forecast": { normal: "" } };

test("the page says in which line the text has a mistake, and which", async () => {
  answer({ ...cluster, "/bft.yaml": "kind: Experiment\nspec:\n  seed: *drawn\n" });
  openPage("/new", Make, "/new?from=library:bft.yaml");
  expect(await screen.findByText("Line 3 of the YAML: *drawn has no anchor &drawn before it. The form shows what stood there before.")).toBeTruthy();
});

test("of a text that is no YAML the page and the list of errors name the same line", async () => {
  const unclosed = { valid: false, findings: [{ line: 3, message: "is not YAML: the object that begins here with { is not closed by }, or lacks a comma" }] };
  answer({ ...cluster, "/validate": unclosed, "/bft.yaml": "kind: Experiment\nspec:\n  apps: [{name: hub\n  nodes: []\n" });
  openPage("/new", Make, "/new?from=library:bft.yaml");
  expect(await screen.findByText("line 3")).toBeTruthy();
  expect(screen.getByText(/^Line \d+ of the YAML/).textContent).toMatch(/^Line 3 of/);
});

test("the part beside the text stands in the address", async () => {
  answer(cluster);
  const router = openPage("/new", Make, "/new?from=empty&part=preview");
  expect(await screen.findByText("Commands that do the same")).toBeTruthy();
  fireEvent.click(screen.getByRole("tab", { name: "Matrix" }));
  await waitFor(() => { expect(router.state.location.search).toEqual({ from: "empty", part: "matrix" }); });
  expect(await screen.findByRole("button", { name: "Make it a campaign" })).toBeTruthy();
});

test("a run that the server could not give is asked for again", async () => {
  answer(cluster);
  openPage("/new", Make, "/new?from=run:team/amber");
  expect(await screen.findByText("There is nothing to begin with")).toBeTruthy();
  answer({ ...cluster, "/runs/amber/clone": { text: "kind: Experiment\n", mark: { namespace: "team", name: "amber", uid: "u" }, notes: [] } });
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText("Clone of amber, run u")).toBeTruthy();
});

test("what the server does not answer is asked for again without a click", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  answer(cluster);
  const answered = fetch;
  let fails = 1;
  vi.stubGlobal("fetch", (request: string) => (request.includes("/library/") && fails-- > 0 ? Promise.resolve(new Response("service unavailable", { status: 503 })) : answered(request)));
  openPage("/new", Make, "/new?from=library:bft.yaml");
  expect(await screen.findByText("service unavailable")).toBeTruthy();
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(await screen.findByText(/^nothing at .*bft.yaml$/)).toBeTruthy();
});
