import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openPage } from "../../testing/page";
import { Runs } from "./Runs";

const recorded: unknown = JSON.parse(readFileSync("src/testing/data/runs.json", "utf8"));
const [damaged, whole] = ["5d0e1c7a-3f0b-4d0e-9a63-1f7a52c0aa02", "0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11"];

const held = vi.hoisted((): { objects: unknown; error: unknown } => ({ objects: [], error: undefined }));

vi.mock("../../kubernetes/hooks", async (original) => ({ ...(await original<object>()), useObjectsIn: () => held }));

beforeEach(() => {
  held.objects = [{ metadata: { namespace: "nor", name: "patrol-1", uid: whole } }, { metadata: { namespace: "nor", name: "patrol-2", uid: "of a later one" } }];
});

afterEach(() => {
  vi.unstubAllGlobals();
  window.localStorage.clear();
});

/** open the page as a user who may read the archives of some namespaces; the empty one is all. */
function open(readable: string[], archives: Record<string, unknown>, address = "/runs") {
  vi.stubGlobal("fetch", (path: string, init?: RequestInit) => {
    if (path.endsWith("/session")) return Promise.resolve(Response.json({ mode: "team", user: "ann", groups: [], namespace: "nor" }));
    if (path.endsWith("/selfsubjectaccessreviews")) {
      const { namespace = "", group, verb } = (JSON.parse(init?.body as string) as { spec: { resourceAttributes: Record<string, string> } }).spec.resourceAttributes;
      return Promise.resolve(Response.json({ status: { allowed: group === "results.vignette.dev" && verb === "get" && readable.includes(namespace) } }));
    }
    const [, namespace = ""] = /\/namespaces\/([^/]+)\/archives\/default\/proxy\/v1\/runs\?namespace=/.exec(path) ?? [];
    const found = archives[namespace];
    if (found instanceof Promise) return found;
    return Promise.resolve(found === undefined ? Response.json({ error: `ann may not read the archive of ${namespace}` }, { status: 403 }) : Response.json(found));
  });
  return openPage("/runs", Runs, address);
}

const rows = async () => within(await screen.findByRole("table", { name: "Archived runs" })).getAllByRole("row").slice(1);

test("a run of a deleted experiment is reached, and an experiment that is still there too", async () => {
  open([""], { "": recorded });
  const [first, second] = (await rows()) as [HTMLElement, HTMLElement];
  expect(within(first).getByRole("link", { name: "patrol-2" }).getAttribute("href")).toBe(`/ns/nor/runs/${damaged}`);
  expect(within(first).queryByRole("link", { name: "open the experiment patrol-2" }), "the experiment of that name is another").toBeNull();
  expect(first.textContent).toMatch(/nor.*Failed.*–20\.00 KiBdamaged records/);
  expect(within(second).getByRole("link", { name: "open the experiment patrol-1" }).getAttribute("href")).toBe("/ns/nor/experiments/patrol-1");
  expect(second.textContent).toMatch(/Succeeded.*2026-03-02 10:00:05.*yes3\.00 MiB/);
  expect((await rows())[2]?.textContent).toMatch(/2026-03-01 08:00:00.*no1\.00 MiB/);
});

test("damaged records are named", async () => {
  open([""], { "": recorded });
  const list = await screen.findByRole("list", { name: "Runs with damaged records" });
  expect(list.textContent).toBe(`patrol-2 (${damaged}): incidents.json, now incidents.json.damaged: it is not one whole JSON object`);
  expect(screen.getByText("A run has damaged records")).toBeTruthy();
});

test("words of the filter stand in the address", async () => {
  const router = open([""], { "": recorded });
  await userEvent.setup().type(await screen.findByLabelText("Text"), "cut");
  expect((await rows()).map((row) => within(row).getAllByRole("link")[0]?.textContent)).toEqual(["e5-cut-1"]);
  expect(screen.getByText("1 of 3 shown")).toBeTruthy();
  expect(router.state.location.searchStr).toBe("?q=cut");
});

test("who may not read all namespaces sees those that he names, and why one is refused", async () => {
  open(["nor"], { nor: recorded });
  expect(await rows()).toHaveLength(3);
  await userEvent.setup().type(screen.getByRole("combobox", { name: "Namespaces to show" }), "prt{Enter}");
  expect((await screen.findByRole("alert", { name: "The archived runs of prt could not be read" })).textContent).toContain("ann may not read the archive of prt");
  expect(await rows()).toHaveLength(3);
});

test("who may read no namespace is asked for one, and not told that there are no runs", async () => {
  open([], {});
  expect(await screen.findByText("You may not read the archived runs of all namespaces")).toBeTruthy();
  expect(screen.queryByText("The archive has no runs here yet.")).toBeNull();
});

test("an archive that does not answer is not said to be empty", async () => {
  open([""], {});
  expect(await screen.findByText("The archived runs could not be read")).toBeTruthy();
  expect(screen.queryByText("The archive has no runs here yet.")).toBeNull();
});

test.each([[[]], [null]])("an archive without runs, %j, says so", async (none) => {
  open([""], { "": none });
  expect(await screen.findByText("The archive has no runs here yet.")).toBeTruthy();
  expect(screen.queryByLabelText("The runs are being listed")).toBeNull();
});

test("until the archive answers, the list is being made", async () => {
  open([""], { "": new Promise(() => undefined) });
  expect(await screen.findByLabelText("The runs are being listed")).toBeTruthy();
  expect(screen.queryByText("The archive has no runs here yet.")).toBeNull();
});

test("on a phone the columns that matter come first", async () => {
  vi.stubGlobal("matchMedia", (media: string) => ({ matches: true, media, addEventListener: () => undefined, removeEventListener: () => undefined }));
  open([""], { "": recorded });
  await rows();
  expect(screen.getAllByRole("columnheader").map((head) => head.textContent)).toEqual(["Run", "Phase", "Ago", "Kept up", "Size", "Problem", "Experiment", "Namespace", "Campaign", "UID"]);
});
