import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, expectAccessible, kubectl, makeNamespace, open, picture, readOnly, test } from "./harness";
import { drawnOn } from "./pixels";

// The archive keeps runs of earlier tests, whose names would count as taken.
const own = `console-journey-${Date.now().toString(36)}`;
const first = "quickstart";
const second = "quickstart-slow";

// One tells the story of two runs, in real time.
test.describe.configure({ mode: "serial", timeout: 480_000 });
test.skip(readOnly, "makes experiments");

let remove: (() => void) | undefined;

test.beforeAll(() => {
  remove = makeNamespace(own);
  // Whoever plans with moving platforms has their scenario in the namespace already.
  kubectl(["apply", "-n", own, "-f", "-"], readFileSync(new URL("../../scenarios/anglova-like/scenario.yaml", import.meta.url), "utf8"));
});

test.afterAll(() => {
  remove?.();
});

const phase = (name: string) => kubectl(["get", "experiment", "-n", own, name, "-o", "jsonpath={.status.phase}"]);

async function choosePart(page: Page, name: string) {
  await page.getByRole("tab", { name, exact: true }).click();
}

/** runIt when the page has found no error, and wait until it runs. */
async function runIt(page: Page, name: string) {
  await expect(page.getByTestId("findings")).toHaveText(/^No errors/);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`/ns/${own}/experiments/${name}$`));
  await expect(page.getByText("T0+", { exact: false }).first(), "the run has begun").toBeVisible({ timeout: 240_000 });
}

async function stopIt(page: Page, name: string) {
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await expect.poll(() => phase(name), { timeout: 180_000, intervals: [2_000] }).toBe("Succeeded");
}

test("the quickstart gets radios and platforms, runs, and is seen to move", async ({ page }) => {
  await open(page, "/");
  await page.getByRole("main").getByRole("link", { name: "New experiment" }).click();
  await page.getByLabel("Search the library").fill("quickstart");
  await page.getByRole("link", { name: "quickstart", exact: true }).click();
  await page.getByLabel("Namespace").selectOption(own);
  await page.getByLabel("Scenario").fill("anglova-like");
  await page.getByLabel("Platform").nth(0).fill("1");
  await page.getByLabel("Platform").nth(1).fill("2");
  await page.getByLabel("Waveform").selectOption("own:rfpipe");
  await page.getByLabel("Duration").fill("8m");
  // Its publishers go on until the run is stopped.
  await page.getByRole("textbox", { name: "YAML of the experiment" }).getByText("at: 70s").click();
  for (const key of ["Home", "Shift+End", "Delete"]) await page.keyboard.press(key);
  await runIt(page, first);

  await choosePart(page, "Nodes");
  const nodes = page.getByRole("table", { name: "Nodes" });
  for (const node of ["nor", "prt"]) await expect(nodes.getByRole("row").filter({ has: page.getByRole("link", { name: node, exact: true }) })).toContainText(/running|ready/i);

  await choosePart(page, "Map");
  await expect(page.getByRole("img", { name: /Map with 2 nodes of 2, [12] on the move; 1 link/ })).toBeVisible({ timeout: 60_000 });
  const before = await drawnOn(page);
  expect(before.share, "share of the map that is drawn upon").toBeGreaterThan(0.0005);
  await expect.poll(async () => (await drawnOn(page)).digest, { timeout: 60_000 }).not.toBe(before.digest);
});

test("a shell opens on a node, its logs are followed, and a capture shows packets", async ({ page }) => {
  await open(page, `/ns/${own}/experiments/${first}?tab=terminal`);
  await page.getByRole("button", { name: "Open a shell" }).click();
  const screen = page.locator(".xterm");
  await expect(screen.locator(".xterm-rows")).toContainText(/[$#] /);
  await screen.click();
  await page.keyboard.type("echo $((6*7))'<b>'seen\n");
  await expect(screen.locator(".xterm-rows")).toContainText("42<b>seen");
  await page.getByRole("button", { name: "Close the shell" }).click();

  await choosePart(page, "Captures");
  await page.getByLabel("Filter").fill("tcp");
  await page.getByRole("button", { name: "Capture", exact: true }).click();
  await expect(page.getByText("filter: tcp")).toBeVisible();
  await page.getByRole("button", { name: "First packets on wan of nor" }).first().click({ timeout: 90_000 });
  await expect(page.getByRole("cell", { name: /^(TCP|MQTT)$/ }).first()).toBeVisible({ timeout: 60_000 });

  await choosePart(page, "Logs");
  await expect(page.getByRole("group", { name: /^Log / }).getByRole("button").first()).toBeVisible({ timeout: 60_000 });
  await expectAccessible(page);
});

test("live figures come, and a radio is silenced on the map", async ({ page }) => {
  await open(page, `/ns/${own}/experiments/${first}`);
  await choosePart(page, "Live");
  await expect(page.getByText(/[1-9][\d\s]* messages sent, [1-9][\d\s]* received/)).toBeVisible({ timeout: 60_000 });
  await expect(page.getByRole("table").getByRole("row", { name: /^prt [1-9][\d\s]* of [1-9]/ })).toBeVisible({ timeout: 60_000 });

  await choosePart(page, "Map");
  await page.getByRole("group", { name: "Nodes of network wan" }).getByRole("button", { name: "nor" }).click();
  await page.getByRole("button", { name: "Silence the radio of nor" }).click();
  await page.getByRole("button", { name: "Apply now" }).click();
  const changes = page.getByRole("region", { name: "Changes by hand" });
  await expect(changes.getByRole("row", { name: /nor.* applied/ })).toBeVisible();
  const spec = kubectl(["get", "livechanges", "-n", own, "-o", "jsonpath={.items[*].spec}"]);
  expect(JSON.parse(spec)).toEqual({ experiment: first, changes: [{ network: "wan", from: "nor", radio: { transmit: false } }] });
  await expect(page.getByRole("group", { name: "Nodes of network wan" }).getByRole("button", { name: "nor" })).toContainText("silent", { timeout: 30_000 });
});

test("it is stopped, and a clone runs over a slower link", async ({ page }) => {
  await open(page, `/ns/${own}/experiments/${first}`);
  await choosePart(page, "Live");
  await picture(page, "live");
  await stopIt(page, first);
  await page.getByRole("link", { name: "Clone" }).click();
  await page.getByLabel("Name", { exact: true }).first().fill(second);
  await page.getByLabel("Rate", { exact: true }).fill("100kbit");
  await runIt(page, second);
  await choosePart(page, "Live");
  await expect(page.getByText(/[1-9]\d* messages sent, [1-9]\d* received/)).toBeVisible({ timeout: 60_000 });
  await stopIt(page, second);
});

test("the comparison of both says that the link differs, and what was done by hand", async ({ page }) => {
  await open(page, `/?ns=${own}`);
  await page.getByRole("link", { name: second, exact: true }).click();
  await expect(page.getByRole("heading", { name: "Headline" })).toBeVisible({ timeout: 60_000 });
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await page.getByLabel("Find runs").fill(own);
  await page.getByRole("checkbox", { name: `Compare ${first}`, exact: true }).click();
  const differs = page.getByRole("table", { name: "What differs in the specification" });
  await expect(differs).toContainText("rate", { timeout: 60_000 });
  await expect(differs).toContainText("100kbit");
  await expect(differs, "what was changed by hand differs too").toContainText("changes by hand");
  await expect(differs, "the clone has it in its timeline").toContainText("timeline");
  await expect(differs.getByRole("row"), "the head, the rate, the timeline and the changes by hand").toHaveCount(4);
});
