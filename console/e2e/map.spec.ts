import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { writeFileSync } from "node:fs";
import { expect, expectNoSideways, open, test, watchToo } from "./harness";
import { mapOfResults, mapPage, serveMapWorld } from "./mapWorld";
import { pmtilesOf } from "./pmtiles";
import { startConsole } from "./server";

/** What the two canvases of a map have: the colours of the ground, and what was drawn upon it. */
interface Pixels {
  groundColours: number;
  /** share of the pixels with something that moves. */
  drawn: number;
  /** digest of what moves. */
  digest: number;
  /** best has the colour of links of the best class; jammer that of jammers. */
  best: number;
  jammer: number;
}

function pixelsOf(page: Page): Promise<Pixels> {
  return page.locator("[data-map]").evaluate((map) => {
    const [ground, moving] = [...map.querySelectorAll("canvas")].map((canvas) => {
      // Chromium warns of a canvas that is read often, so that a copy is read.
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy?.drawImage(canvas, 0, 0);
      return copy?.getImageData(0, 0, canvas.width, canvas.height).data ?? new Uint8ClampedArray();
    });
    const colours = new Set<number>();
    for (let i = 0; ground && i < ground.length; i += 4 * 97) colours.add(((ground[i] ?? 0) << 16) | ((ground[i + 1] ?? 0) << 8) | (ground[i + 2] ?? 0));
    const found = { groundColours: colours.size, drawn: 0, digest: 0, best: 0, jammer: 0 };
    const near = (i: number, rgb: readonly number[]) => rgb.every((value, c) => Math.abs((moving?.[i + c] ?? 0) - value) < 12) && (moving?.[i + 3] ?? 0) > 200;
    for (let i = 0; moving && i < moving.length; i += 4) {
      if ((moving[i + 3] ?? 0) < 40) continue;
      found.drawn += 4 / moving.length;
      found.digest = (Math.imul(found.digest, 31) + i + (moving[i] ?? 0)) | 0;
      if (near(i, [0x00, 0x4f, 0x8a])) found.best++;
      if (near(i, [0xa8, 0x3a, 0x00])) found.jammer++;
    }
    return found;
  });
}

/** shareOfGround whose colours are as wanted. */
async function shareOfGround(page: Page, isWanted: (colour: [number, number, number]) => boolean): Promise<number> {
  const colours = await page.locator("[data-map]").evaluate((map) => {
    const ground = map.querySelector("canvas");
    if (!ground) throw new Error("the map has no canvas of the ground");
    const copy = new OffscreenCanvas(ground.width, ground.height).getContext("2d", { willReadFrequently: true });
    copy?.drawImage(ground, 0, 0);
    const pixels = copy?.getImageData(0, 0, ground.width, ground.height).data ?? new Uint8ClampedArray();
    const found: [number, number, number][] = [];
    for (let i = 0; i < pixels.length; i += 4 * 101) found.push([pixels[i] ?? 0, pixels[i + 1] ?? 0, pixels[i + 2] ?? 0]);
    return found;
  });
  return colours.filter(isWanted).length / colours.length;
}

async function openMap(page: Page) {
  await open(page, mapPage);
  await expect(page.getByRole("img", { name: /Map with 24 nodes of 24/ })).toBeVisible();
}

test.use({ colorScheme: "light" });

test("the map shows terrain, nodes, links and the jammer", async ({ page }) => {
  await serveMapWorld(page);
  await openMap(page);
  await expect.poll(async () => (await pixelsOf(page)).groundColours).toBeGreaterThan(60);
  await expect.poll(async () => (await pixelsOf(page)).best).toBeGreaterThan(100);
  const { drawn, jammer } = await pixelsOf(page);
  expect(drawn).toBeGreaterThan(0.01);
  expect(jammer).toBeGreaterThan(100);
});

test("the map fits a phone", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await serveMapWorld(page);
  await openMap(page);
  await expectNoSideways(page);
});

test("nodes move while the run goes on", async ({ page }) => {
  await serveMapWorld(page);
  await openMap(page);
  const before = (await pixelsOf(page)).digest;
  await expect.poll(async () => (await pixelsOf(page)).digest).not.toBe(before);
});

/** playFromTheStart plays the run again, much faster than it was. */
async function playFromTheStart(page: Page) {
  await page.getByRole("slider").focus();
  await page.keyboard.press("Home");
  await expect(page.getByText(/\(T0\+0s\)/)).toBeVisible();
  await page.getByRole("button", { name: "Play" }).click();
  await page.getByLabel("Speed").selectOption("60");
}

test("the past is played again, and the present goes on", async ({ page }) => {
  await serveMapWorld(page);
  await openMap(page);
  await playFromTheStart(page);
  const before = (await pixelsOf(page)).digest;
  await expect.poll(async () => (await pixelsOf(page)).digest).not.toBe(before);
  await expect(page.getByRole("button", { name: "Live", exact: true })).toBeVisible();
});

test("the results page has the map of the run, and its slider moves the nodes", async ({ page }) => {
  await serveMapWorld(page, { archived: true });
  await open(page, mapOfResults);
  await expect(page.getByRole("img", { name: /Map with 24 nodes of 24, 24 on the move/ })).toBeVisible();
  await expect.poll(async () => (await pixelsOf(page)).best).toBeGreaterThan(100);
  const before = (await pixelsOf(page)).digest;
  await page.getByRole("slider").focus();
  await page.keyboard.press("End");
  await expect(page.getByRole("img", { name: /Map with 24 nodes of 24, 0 on the move/ })).toBeVisible();
  await expect.poll(async () => (await pixelsOf(page)).digest).not.toBe(before);
});

test("243 nodes that move take less than 30 % of a core", async ({ page }) => {
  await serveMapWorld(page, { nodes: 243 });
  await open(page, mapPage);
  await expect(page.getByRole("img", { name: /Map with 243 nodes of 243/ })).toBeVisible();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const spent = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? NaN;
    return { cpu: of("ProcessTime"), clock: of("Timestamp") };
  };
  await playFromTheStart(page);
  const before = await spent();
  await page.waitForTimeout(4_000);
  const after = await spent();
  const share = (after.cpu - before.cpu) / (after.clock - before.clock);
  test.info().annotations.push({ type: "share of a core", description: share.toFixed(3) });
  expect(share).toBeLessThan(0.3);
});

test("the map is moved and enlarged by keys", async ({ page }) => {
  await serveMapWorld(page);
  await openMap(page);
  await page.getByRole("application").focus();
  const before = (await pixelsOf(page)).digest;
  await page.keyboard.press("+");
  await expect.poll(async () => (await pixelsOf(page)).digest).not.toBe(before);
});

test("a node is selected in the list, and the text says its hops", async ({ page }) => {
  await serveMapWorld(page);
  await openMap(page);
  const list = page.getByRole("group", { name: "Nodes of network vhf" });
  await list.getByRole("button", { name: "veh-7" }).click();
  await expect(list.getByRole("button", { name: "veh-8" })).toContainText("1 hop");
  await expect(list.getByRole("button", { name: "veh-3" })).toContainText("silent");
});

test("a background map of one's own file lies below the terrain", async ({ page }, testInfo) => {
  const file = testInfo.outputPath("map.pmtiles");
  writeFileSync(file, pmtilesOf([200, 30, 160]));
  const own = await startConsole("--map", file);
  watchToo(own.origin);
  try {
    await serveMapWorld(page, { background: true });
    await page.goto(`${own.origin}${mapPage}#token=${own.token}`);
    await expect(page.getByRole("img", { name: /Map with 24 nodes of 24/ })).toBeVisible();
    // Terrain shades a part of it; beside the terrain it is as in the file.
    await expect.poll(() => shareOfGround(page, ([r, g, b]) => r - g > 40 && b - g > 20)).toBeGreaterThan(0.9);
    await expect.poll(() => shareOfGround(page, ([r, g, b]) => Math.abs(r - 200) + Math.abs(g - 30) + Math.abs(b - 160) < 6)).toBeGreaterThan(0.05);
  } finally {
    own.stop();
  }
});

test("a jammer is placed by a click, checked, and created", async ({ page }) => {
  const world = await serveMapWorld(page);
  await openMap(page);
  await page.getByRole("button", { name: "Place a jammer" }).click();
  await page.getByRole("button", { name: "Apply now" }).click();
  await expect(page.getByText("a jammer needs either its position or its pathloss to every node")).toBeVisible();
  await page.getByRole("img", { name: /Map with/ }).click({ position: { x: 200, y: 200 } });
  await expect(page.getByLabel("Latitude")).not.toBeEmpty();
  await page.getByRole("button", { name: "Apply now" }).click();
  await expect(page.getByRole("button", { name: "Apply now" })).toBeHidden();
  expect(world.created.map(({ dryRun }) => dryRun)).toEqual([true, true, false]);
  expect(world.created[2]?.body).toMatchObject({ spec: { experiment: "bft", changes: [{ network: "vhf", jammer: { name: "noise", power: "100W" } }] } });
});

test("who may change nothing sees no button", async ({ page }) => {
  await serveMapWorld(page, { allowed: false });
  await openMap(page);
  await expect(page.getByRole("heading", { name: "What happened to whom" })).toBeVisible();
  await expect(page.getByRole("button", { name: /jammer|silence/i })).toHaveCount(0);
});

test("a run without positions has its nodes and links in a circle, says so and offers the topology", async ({ page }) => {
  await serveMapWorld(page, { positions: false });
  await open(page, mapPage);
  await expect(page.getByRole("img", { name: /Map with 24 nodes without positions, in a circle; [1-9]\d* links/ })).toBeVisible();
  await expect.poll(async () => (await pixelsOf(page)).best).toBeGreaterThan(100);
  expect((await pixelsOf(page)).groundColours).toBe(1);
  await expect(page.getByText("No node of this network has a position")).toBeVisible();
  await expect(page.getByRole("link", { name: "Show the topology" })).toHaveAttribute("href", /tab=topology/);
});

test("two clicks make two platforms, their hops, and YAML", async ({ page }) => {
  const world = await serveMapWorld(page);
  await open(page, "/scenarios/edit");
  const map = page.getByRole("img", { name: /Map with/ });
  await map.click({ position: { x: 150, y: 200 } });
  await map.click({ position: { x: 300, y: 250 } });
  await expect(page.getByRole("img", { name: /Map with 2 nodes of 2/ })).toBeVisible();
  await expect(page.getByRole("cell", { name: "1 hop", exact: true })).toBeVisible();
  await expect(page.getByText("time,platform,latitude,longitude")).toBeVisible();
  expect(world.previews.at(-1)).toContain("kind: Scenario");
  expect((await pixelsOf(page)).drawn).toBeGreaterThan(0.001);
});

for (const [path, part] of [[mapPage, "[role=tabpanel]"], ["/scenarios/edit", "main"]] as const) {
  test(`axe finds nothing serious on ${path}`, async ({ page }) => {
    await serveMapWorld(page);
    await open(page, path);
    await expect(page.getByRole("img", { name: /Map with/ })).toBeVisible();
    const { violations } = await new AxeBuilder({ page }).include(part).analyze();
    expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
  });
}
