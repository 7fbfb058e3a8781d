import type { Browser, Page } from "@playwright/test";
import { cpus, loadavg } from "node:os";
import { expect, open, test } from "./harness";
import { largePage, serveLargeWorld } from "./largeWorld";

const amounts = { runs: 1000, nodes: 300, events: 3600 };

/** watchMachine returns whether the machine is busy: by its load of the last minute, or as its processors have hardly idled since then. */
function watchMachine(): () => boolean {
  const idle = () => cpus().reduce((sum, { times }) => sum + times.idle, 0);
  const [began, before] = [performance.now(), idle()];
  return () => (loadavg()[0] ?? 0) > cpus().length || (idle() - before) / (performance.now() - began) < cpus().length / 5;
}

/** report a figure, for docs/measurements/console.md. */
function report(what: string, figures: object): void {
  console.log(`  ${what}: ${JSON.stringify(figures)}`);
}

/** View is when a page first showed what it is for, and what that took. */
interface View {
  milliseconds: number;
  /** bytes of the page's files, as they were compressed. */
  bytes: number;
  /** work is the processor time of the page's main thread, in milliseconds. */
  work: number;
}

/** workOf a page begins to count the processor time of its main thread, which a busy machine does not lengthen. */
async function workOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => 1000 * ((await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
}

/** watchView notes when the first page has read what it shows, and is drawn. */
async function watchView(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const look = () => {
      const isThere = document.querySelector("#main h1") && !document.querySelector("#main .mantine-Skeleton-root");
      requestAnimationFrame(isThere ? () => Object.assign(window, { firstView: performance.now() }) : look);
    };
    requestAnimationFrame(look);
  });
}

async function viewOf(page: Page): Promise<Omit<View, "work">> {
  const seen = await page.waitForFunction(() => (window as { firstView?: number }).firstView);
  const milliseconds = (await seen.jsonValue()) ?? Infinity;
  const bytes = await page.evaluate((until) => {
    const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")] as PerformanceResourceTiming[];
    return entries.filter(({ startTime, name }) => startTime <= until && !/\/(k8s|console\/v1)\//.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  }, milliseconds);
  return { milliseconds, bytes };
}

async function firstView(browser: Browser): Promise<View> {
  const context = await browser.newContext(); // nothing is in its cache
  const page = await context.newPage();
  const work = await workOf(page);
  await watchView(page);
  await open(page);
  const view = { ...(await viewOf(page)), work: Math.round(await work()) };
  await context.close();
  return view;
}

test("the first view comes within one second, and 500 kB", async ({ browser }) => {
  const isBusy = watchMachine();
  const views: View[] = [];
  while (views.length < 5) views.push(await firstView(browser));
  const best = Math.min(...views.map(({ milliseconds }) => milliseconds));
  const bytes = Math.max(...views.map((view) => view.bytes));
  report("first view", { milliseconds: views.map((view) => Math.round(view.milliseconds)), work: views.map((view) => view.work), bytes });
  expect(bytes).toBeLessThan(500_000);
  expect(bytes, "the page's own files are counted").toBeGreaterThan(50_000);
  expect(Math.min(...views.map((view) => view.work))).toBeLessThan(1000);
  // A busy machine lets a page wait, so that the time says nothing there.
  if (!isBusy()) expect(best).toBeLessThan(1000);
});

/** Scrolled is how a list moved from its beginning to its end. */
interface Scrolled {
  /** rows that were in the page at the same time, at most. */
  rows: number;
  /** pixels that were passed. */
  pixels: number;
  /** milliseconds from one frame to the next. */
  medianFrame: number;
  p95Frame: number;
  /** longestTask in milliseconds; 0 if none took over 50 ms. */
  longestTask: number;
  /** work is the processor time of the page's main thread for each frame, in milliseconds. */
  work: number;
  /** busy is set where others had the processors too. */
  busy: boolean;
}

const steps = 150;

async function scrollThrough(page: Page, label: string, rowSelector: string): Promise<Scrolled> {
  const isBusy = watchMachine();
  const work = await workOf(page);
  const before = await work();
  const frames = await framesOf(page, label, rowSelector);
  return { ...frames, work: Number((((await work()) - before) / steps).toFixed(1)), busy: isBusy() };
}

function framesOf(page: Page, label: string, rowSelector: string): Promise<Omit<Scrolled, "work" | "busy">> {
  return page.locator(`[aria-label="${label}"]`).first().evaluate(async (scroller, { selector, steps }) => {
    const tasks: number[] = [];
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
    observer.observe({ type: "longtask" });
    const frame = () => new Promise<number>(requestAnimationFrame);
    const frames: number[] = [];
    let rows = 0;
    scroller.scrollTop = 0;
    let before = await frame();
    for (let i = 1; i <= steps; i++) {
      scroller.scrollTop = ((scroller.scrollHeight - scroller.clientHeight) * i) / steps;
      const now = await frame();
      frames.push(now - before);
      before = now;
      rows = Math.max(rows, scroller.querySelectorAll(selector).length);
    }
    observer.disconnect();
    frames.sort((a, b) => a - b);
    const at = (share: number) => Math.round(frames[Math.floor(share * frames.length)] ?? Infinity);
    return { rows, pixels: Math.round(scroller.scrollTop), medianFrame: at(0.5), p95Frame: at(0.95), longestTask: Math.round(Math.max(0, ...tasks)) };
  }, { selector: rowSelector, steps });
}

function expectSmooth(what: string, scrolled: Scrolled): void {
  const { pixels, rows, work, busy } = scrolled;
  report(what, scrolled);
  expect(pixels, "the list is long").toBeGreaterThan(10_000);
  expect(rows, "rows are drawn").toBeGreaterThan(10);
  expect(rows, "only rows in view are drawn").toBeLessThan(100);
  // On a busy machine caches are others' too.
  expect(work, "60 frames a second need less than 16 ms each").toBeLessThan(busy ? 32 : 16);
}

test("1000 runs scroll smoothly", async ({ page }) => {
  await serveLargeWorld(page, amounts);
  await open(page);
  await expect(page.getByRole("table", { name: "Experiments and campaigns" })).toHaveAttribute("aria-rowcount", /^100\d$/);
  expectSmooth("1000 runs", await scrollThrough(page, "Experiments and campaigns", '[role="row"]'));
});

test("300 nodes scroll smoothly", async ({ page }) => {
  await serveLargeWorld(page, amounts);
  await open(page, largePage("nodes"));
  await expect(page.getByText("300 nodes", { exact: true })).toBeVisible();
  expectSmooth("300 nodes", await scrollThrough(page, "Nodes", '[role="row"]'));
});

test("an hour of events scrolls smoothly, and is filtered at once", async ({ page }) => {
  await serveLargeWorld(page, amounts);
  await open(page, largePage("events"));
  await expect(page.getByText("3600 lines")).toBeVisible();
  expectSmooth("3600 events", await scrollThrough(page, "Events", "button"));
  const work = await workOf(page);
  const before = await work();
  await page.getByRole("textbox", { name: "Filter events" }).fill("Message 1234 ");
  await expect(page.getByText("1 line", { exact: true })).toBeVisible();
  const taken = Math.round((await work()) - before);
  report("filter of 3600 events", { work: taken });
  expect(taken, "processor time of a filter").toBeLessThan(1000);
});
