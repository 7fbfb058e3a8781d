import { devices } from "@playwright/test";
import { expect, expectAccessible, expectNoSideways, kubectl, makeNamespace, open, origin, picture, readOnly, test } from "./harness";

const own = "console-home";

// An experiment that starts at once, in little room.
const small = {
  apiVersion: "vignette.dev/v1alpha1",
  kind: "Experiment",
  metadata: { name: "small", namespace: own },
  spec: {
    duration: "20s",
    networks: [{ name: "wan", waveform: "tactical-1", subnet: "198.18.9.0/24" }],
    apps: [
      { name: "broker", mosquitto: {} },
      { name: "picture", subscriber: { protocol: "mqtt", to: "broker" } },
      { name: "bft", publisher: { protocol: "mqtt", to: "broker", payload: "geojson", period: "5s" } },
    ],
    nodes: [
      { name: "hq", networks: ["wan"], apps: ["broker", "picture"] },
      { name: "veh", networks: ["wan"], apps: ["bft"] },
    ],
    timeline: [{ at: "1s", start: ["bft"] }],
  },
};

/** shown is an experiment that the page must show: one of ours, or where the cluster is only read, the first that is there. */
let shown = { namespace: own, name: "small" };
let remove: (() => void) | undefined;

test.beforeAll(() => {
  if (readOnly) {
    const [namespace = "", name = ""] = kubectl(["get", "experiments", "-A", "-o", "jsonpath={.items[0].metadata.namespace} {.items[0].metadata.name}"]).split(" ");
    shown = { namespace, name };
    return;
  }
  remove = makeNamespace(own);
  kubectl(["apply", "-f", "-"], JSON.stringify(small));
});

test.afterAll(() => {
  remove?.();
});

const search = () => `/?ns=${shown.namespace}&q=${shown.name}`;

test("the home page shows an experiment, what is free and who uses it", async ({ page }) => {
  await open(page, search());
  await expect(page.getByRole("link", { name: shown.name, exact: true })).toBeVisible();
  await expect(page.getByText(/free of/).first()).toBeVisible();
  await expect(page.getByRole("heading", { name: "Teams" })).toBeVisible();
  expect(page.url(), "the token has left the address").not.toContain("token");
});

test("the filter is in the address, and survives a reload", async ({ page }) => {
  await open(page);
  await page.getByLabel("Text").fill("no-such-experiment");
  await expect(page).toHaveURL(/q=no-such-experiment/);
  await page.reload();
  await expect(page.getByLabel("Text")).toHaveValue("no-such-experiment");
  await expect(page.getByText(/^0 of \d+ shown$/)).toBeVisible();
});

test("the first view takes less than 500 kB", async ({ page }) => {
  await open(page);
  await expect(page.getByRole("table", { name: "Experiments and campaigns" })).toBeVisible();
  const bytes = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .filter((entry): entry is PerformanceResourceTiming => entry instanceof PerformanceResourceTiming && /\.(js|css|svg)$/.test(new URL(entry.name).pathname))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  );
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(500_000);
});

for (const scheme of ["light", "dark"] as const) {
  test(`the home page is accessible in ${scheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page);
    await expect(page.getByRole("table", { name: "Experiments and campaigns" })).toBeVisible();
    await expectAccessible(page);
    if (scheme === "light") await picture(page, "home");
  });
}

test("the list is reached and a page opened with the keyboard alone", async ({ page }) => {
  await open(page, search());
  const link = page.getByRole("link", { name: shown.name, exact: true });
  await expect(link).toBeVisible();
  for (let i = 0; i < 60 && !(await link.evaluate((element) => element === document.activeElement)); i++) await page.keyboard.press("Tab");
  await expect(link).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`${origin}/ns/${shown.namespace}/`));
});

test.describe("on a phone", () => {
  const { viewport, hasTouch, isMobile } = devices["iPhone 13"];
  test.use({ viewport, hasTouch, isMobile });

  test("the home page fits", async ({ page }) => {
    await open(page, search());
    await expect(page.getByRole("link", { name: shown.name, exact: true })).toBeVisible();
    await expectNoSideways(page);
    await expectAccessible(page);
  });
});

test("a thousand runs stay smooth", async ({ page }) => {
  // The API server's answer is replaced, so that the cluster needs no thousand runs.
  await page.route(/\/experiments\?.*limit=/, async (route) => {
    const items = Array.from({ length: 1000 }, (_, i) => ({
      metadata: { name: `run-${i}`, namespace: "many", uid: String(i), creationTimestamp: "2026-01-01T00:00:00Z" },
      spec: {},
      status: { phase: "Succeeded", completionTime: new Date(1.7e12 + i * 1000).toISOString(), message: "100 % of 10 offered deliveries arrived" },
    }));
    await route.fulfill({ json: { kind: "ExperimentList", apiVersion: "vignette.dev/v1alpha1", metadata: { resourceVersion: "1" }, items } });
  });
  await open(page);
  const table = page.getByRole("table", { name: "Experiments and campaigns" });
  await expect(table.getByRole("link", { name: "run-999" })).toBeVisible();
  expect(await table.getByRole("row").count()).toBeLessThan(80);
  await table.focus();
  await page.keyboard.press("End");
  await expect(table.getByRole("link", { name: "run-0", exact: true })).toBeVisible();
});
