import AxeBuilder from "@axe-core/playwright";
import { expect, test as base, type Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** origin of the console under test. */
export const origin = process.env.CONSOLE_ORIGIN ?? "";
const token = process.env.CONSOLE_TOKEN ?? "";

/** open a path of the console as its user. */
export async function open(page: Page, path = "/"): Promise<void> {
  await page.goto(`${origin}${path}#token=${token}`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

const ours = new Set([origin]);

/** watchToo takes another console's origin for one of those that a test may ask. Its user has fewer rights, and may be refused. */
export function watchToo(another: string): void {
  ours.add(another);
}

const isOurs = (url: string) => [...ours].some((one) => url.startsWith(`${one}/`) || url.startsWith(`${one.replace("http", "ws")}/`));

// Chromium reports each answer 403 as an error, also where the page asks whether it may; and 401, by which the page learns that nobody is logged in.
const isRefusal = (text: string) => /the server responded with a status of 40[13]/.test(text);

// The results server knows a run a moment after it was admitted; a page that asks earlier asks again.
const isEarly = (text: string, url: string) => text.includes("the server responded with a status of 404") && /\/proxy\/v1\/runs\/[^/]+(\?live=true|\/files)$/.test(url);

// By a dry run the page asks whether what the user wrote is right.
const isFinding = (text: string, url: string) => text.includes("the server responded with a status of 422") && url.includes("dryRun=All");

/** A test of the console fails for anything in the browser's console, and for any request that leaves the origin. */
export const test = base.extend<{ watched: undefined }>({
  watched: [
    async ({ context }, use) => {
      const found: string[] = [];
      const left = (url: string) => !isOurs(url) && /^(https?|wss?):/.test(url);
      context.on("console", (message) => {
        if (isRefusal(message.text()) && !message.location().url.startsWith(`${origin}/`)) return;
        if (isEarly(message.text(), message.location().url) || isFinding(message.text(), message.location().url)) return;
        if (["error", "warning"].includes(message.type())) found.push(`the console says: ${message.text()}`);
      });
      context.on("weberror", (error) => found.push(`the page throws: ${error.error().message}`));
      context.on("request", (request) => {
        if (left(request.url())) found.push(`a request leaves the origin: ${request.url()}`);
      });
      context.on("page", (page) => {
        page.on("websocket", (socket) => {
          if (left(socket.url())) found.push(`a WebSocket leaves the origin: ${socket.url()}`);
        });
      });
      await use(undefined);
      expect(found).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

/** expectAccessible holds the page against axe's rules; none that is serious may be broken. */
export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}

/** expectNoSideways reports a page that is wider than the screen. */
export async function expectNoSideways(page: Page): Promise<void> {
  const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(width, "pixels beyond the screen's width").toBeLessThanOrEqual(0);
}

const pictures = fileURLToPath(new URL("../../docs/pictures/console/", import.meta.url));

/** picture writes a picture for the documentation, where PICTURES asks for them. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}${name}.png`, animations: "disabled" });
}

/** kubectl runs on the cluster under test. */
export function kubectl(args: string[], input?: string): string {
  return execFileSync("kubectl", args, { encoding: "utf8", maxBuffer: 1 << 28, ...(input !== undefined && { input }) });
}

/** makeNamespace for the objects of a test, and the function that removes it. One that an earlier test left has to be gone first. */
export function makeNamespace(name: string): () => void {
  if (kubectl(["get", "namespace", name, "--ignore-not-found", "-o", "jsonpath={.metadata.deletionTimestamp}"])) kubectl(["wait", "--for=delete", `namespace/${name}`, "--timeout=100s"]);
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { "pod-security.kubernetes.io/enforce": "restricted" } } }));
  return () => {
    kubectl(["delete", "namespace", name, "--wait=false"]);
  };
}

/** Set where the cluster is read and never changed; tests that need objects of their own skip. */
export const readOnly = Boolean(process.env.CONSOLE_READ_ONLY);
