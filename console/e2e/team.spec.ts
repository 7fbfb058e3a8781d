import type { Page, Request } from "@playwright/test";
import { expect, expectAccessible, readOnly, test, watchToo } from "./harness";
import { startTeamConsole, type TeamConsole } from "./team";

// The teams' names and users are those of internal/testteam. All that a team has is called by the team's word.
const alpha = "team-alpha";
const bravo = "team-bravo";
const run = `/ns/${alpha}/experiments/amber`;

test.use({ ignoreHTTPSErrors: true });

let team: TeamConsole;

test.beforeAll(async () => {
  test.setTimeout(240_000); // it may compile its program, and pods start
  team = await startTeamConsole(!readOnly);
  watchToo(team.origin);
  watchToo(team.issuer);
});

test.afterAll(async () => {
  test.setTimeout(120_000);
  await (team as TeamConsole | undefined)?.stop(); // it may not have started
});

test.beforeEach(() => {
  test.skip(team.skip !== undefined, team.skip);
});

/** logIn at the service's page, from a page of the console, to which it comes back. */
async function logIn(page: Page, user: string, path = "/"): Promise<void> {
  await page.goto(team.origin + path);
  await page.getByRole("link", { name: "Log in" }).click();
  await expect(page).toHaveURL(new RegExp(`^${team.issuer}/`));
  await page.getByLabel("Name").fill(user);
  await page.getByLabel("Password").fill(team.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page).toHaveURL(team.origin + path);
  await expect(page.getByText(`oidc:${user}@example.org`, { exact: true })).toBeVisible();
}

/** showNamespace on the home page, as a user does who may not list all. */
async function showNamespace(page: Page, name: string): Promise<void> {
  await page.getByRole("combobox", { name: "Namespaces to show" }).fill(name);
  await page.keyboard.press("Enter");
}

test("a member sees the runs of the own team and none of another", async ({ page }) => {
  const answers: string[] = [];
  page.on("response", (response) => {
    void response.text().then((text) => answers.push(text)).catch(() => undefined);
  });
  await logIn(page, "anna");
  await showNamespace(page, alpha);
  await expect(page.getByRole("link", { name: "amber", exact: true })).toBeVisible();
  await expectAccessible(page);
  await showNamespace(page, bravo);
  await expect(page.getByText("Some experiments could not be read")).toBeVisible();
  await expect(page.getByRole("link", { name: "amber", exact: true })).toBeVisible();
  expect((await page.content()) + answers.join(), "what the browser has got").not.toContain("crimson");
});

test("another team's run does not open", async ({ page }) => {
  await logIn(page, "anna", `/ns/${bravo}/experiments/crimson`);
  await expect(page.getByRole("alert").first()).toBeVisible();
  const text = await page.locator("body").innerText();
  expect(text).not.toMatch(/crimson-|T0\+/);
});

test("no script can read the session, and no address has a token", async ({ page }) => {
  const addresses: string[] = [];
  page.on("request", (request) => addresses.push(request.url()));
  await logIn(page, "anna");
  expect(addresses.filter((address) => address.includes("eyJ"))).toEqual([]);
  const kept = await page.evaluate(() => document.cookie + JSON.stringify(window.localStorage) + JSON.stringify(window.sessionStorage));
  expect(kept).not.toMatch(/eyJ|__Host/);
});

const refusable = /^(Stop|Delete|Capture|Open a shell|Add the toolbox|Change .*|Silence .*|Place .*)$/;

/** openTab shows a part of the run's page, with what it has. */
async function openTab(page: Page, tab: string): Promise<void> {
  await page.getByRole("tab", { name: tab, exact: true }).click();
  const panel = page.getByRole("tabpanel", { name: tab });
  await expect(panel).toContainText(/\w/);
  await expect(panel.locator(".mantine-Loader-root")).toHaveCount(0);
}

/** reviewsOf a page counts the questions about the user's rights that are not answered yet. None were asked counts as one. */
function reviewsOf(page: Page): () => number {
  const isReview = (request: Request) => request.url().endsWith("selfsubjectaccessreviews");
  let [asked, answered] = [0, 0];
  page.on("request", (request) => { if (isReview(request)) asked++; });
  page.on("requestfinished", (request) => { if (isReview(request)) answered++; });
  return () => (asked === 0 ? 1 : asked - answered);
}

test("a member may stop the run, and a viewer sees no button that would be refused", async ({ browser, page }) => {
  await logIn(page, "anna", run);
  await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();
  const other = await browser.newContext({ ignoreHTTPSErrors: true });
  const vera = await other.newPage();
  const awaited = reviewsOf(vera);
  await logIn(vera, "vera", run);
  await expect(vera.getByRole("heading", { name: "amber" })).toBeVisible();
  for (const tab of ["Overview", "Nodes", "Map", "Topology", "Live", "Events", "Logs", "Captures"]) {
    for (const one of [page, vera]) await openTab(one, tab);
    await expect.poll(awaited, `answers about rights at ${tab}`).toBe(0);
    await expect(page.getByRole("button", { name: refusable }).first(), `a member's buttons of ${tab}`).toBeVisible();
    await expect(vera.getByRole("button", { name: refusable }), `buttons of ${tab}`).toHaveCount(0);
    await expect(vera.getByRole("link", { name: "Clone" })).toHaveCount(0);
  }
  // The last tab has a button of its own.
  await expect(page.getByRole("button", { name: "Capture", exact: true })).toBeVisible();
  await expect(page.getByRole("link", { name: "Clone" })).toBeVisible();
  const refused = await vera.evaluate(async (path) => {
    const answer = await fetch(path, { method: "PATCH", headers: { "content-type": "application/merge-patch+json" }, body: JSON.stringify({ spec: { stop: true } }) });
    return answer.status;
  }, `/k8s/apis/vignette.dev/v1alpha1/namespaces/${alpha}/experiments/amber`);
  expect(refused).toBe(403);
  await other.close();
});

test("the next user of a browser sees nothing of the one before", async ({ page }) => {
  await logIn(page, "anna");
  await showNamespace(page, alpha);
  await expect(page.getByRole("link", { name: "amber", exact: true })).toBeVisible();
  await page.evaluate(() => { window.sessionStorage.setItem("kept", "amber"); });
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByText("You are not logged in.")).toBeVisible();
  expect(await page.evaluate(() => window.sessionStorage.getItem("kept")), "what the tab has kept").toBeNull();
  await logIn(page, "bert");
  await showNamespace(page, bravo);
  await expect(page.getByRole("link", { name: "crimson", exact: true })).toBeVisible();
  const text = await page.locator("body").innerText();
  expect(text).not.toMatch(/amber|alpha/);
});
