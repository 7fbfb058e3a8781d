import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, kubectl, makeNamespace, open, readOnly, test, watchToo } from "./harness";
import { startConsole, type RunningConsole } from "./server";

const own = "console-viewer";
const name = "only-seen";
const shouted = "<img src=x onerror=alert(1)><b>bold</b>";

/** imageWithShell is one that the cluster has. */
function imageWithShell(): string {
  const names = kubectl(["get", "nodes", "-o", "jsonpath={.items[*].status.images[*].names[*]}"]).split(" ");
  const found = names.find((image) => image.includes("vignette/toolbox:"));
  if (!found) throw new Error("no host of the cluster has the image vignette/toolbox");
  return found;
}

// Names allow no HTML, so that an app writes it into its log.
const experiment = () => ({
  apiVersion: "vignette.dev/v1alpha1",
  kind: "Experiment",
  metadata: { name, namespace: own },
  spec: {
    duration: "10m",
    networks: [{ name: "wan", waveform: "baseline", subnet: "198.18.11.0/24" }],
    apps: [{ name: "shout", image: imageWithShell(), command: ["sh", "-c", `while sleep 1; do echo '${shouted}'; done`] }],
    nodes: [{ name: "hq", networks: ["wan"], apps: ["shout"] }],
    timeline: [{ at: "1s", start: ["shout"] }],
  },
});

/** viewerOf the namespace: a kubeconfig of a service account with the rights of Kubernetes' role view there. */
function viewerOf(folder: string): string {
  const account = { kind: "ServiceAccount", name: "viewer", namespace: own };
  const objects = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "viewer", namespace: own } },
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", metadata: { name: "viewer", namespace: own }, roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" }, subjects: [account] },
  ];
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  interface Config { clusters: unknown[]; contexts: { context: { cluster: string } }[] }
  const config = JSON.parse(kubectl(["config", "view", "--minify", "--flatten", "-o", "json"])) as Config;
  const token = kubectl(["create", "token", "-n", own, "viewer", "--duration=1h"]).trim();
  const cluster = config.contexts[0]?.context.cluster;
  const path = join(folder, "kubeconfig");
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "viewer",
      clusters: config.clusters,
      users: [{ name: "viewer", user: { token } }],
      contexts: [{ name: "viewer", context: { cluster, user: "viewer", namespace: own } }],
    }),
    { mode: 0o600 },
  );
  return path;
}

test.describe.configure({ timeout: 240_000 });
test.skip(readOnly, "makes an experiment");

let viewers: RunningConsole;
const undo: (() => void)[] = [];

test.beforeAll(async () => {
  undo.push(makeNamespace(own));
  kubectl(["apply", "-f", "-"], JSON.stringify(experiment()));
  const folder = mkdtempSync(join(tmpdir(), "console-viewer-"));
  undo.push(() => { rmSync(folder, { recursive: true }); });
  viewers = await startConsole("--kubeconfig", viewerOf(folder));
  watchToo(viewers.origin);
  undo.push(viewers.stop);
});

test.afterAll(() => {
  for (const each of undo.reverse()) each();
});

async function openAsViewer(page: Page, path: string) {
  await page.goto(`${viewers.origin}${path}#token=${viewers.token}`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

const page = `/ns/${own}/experiments/${name}`;

test("HTML in a log line stays text", async ({ page: browser }) => {
  await open(browser, `${page}?tab=logs`);
  await expect(browser.getByRole("group", { name: /^Log / }).getByText(shouted).first()).toBeVisible({ timeout: 120_000 });
  await expect(browser.locator("img[src=x]")).toHaveCount(0);
});

test.describe("a viewer", () => {
  test("sees the run and no button that would be refused", async ({ page: browser }) => {
    await openAsViewer(browser, page);
    await expect(browser.getByText(/T0\+/).first()).toBeVisible({ timeout: 120_000 });
    await expect(browser.getByRole("link", { name: "Results" })).toBeVisible();
    for (const tab of ["Overview", "Nodes", "Map", "Topology", "Live", "Events", "Logs", "Terminal", "Captures"]) {
      await browser.getByRole("tab", { name: tab, exact: true }).click();
      await expect(browser.getByRole("tabpanel", { name: tab })).toBeVisible();
      await expect(browser.getByRole("button", { name: /^(Stop|Delete|Clone|Capture|Open a shell|Add the toolbox|Change .*|Silence .*|Place .*)$/ }), `buttons of ${tab}`).toHaveCount(0);
    }
    await expect(browser.getByRole("link", { name: "Clone" })).toHaveCount(0);
  });

  test("may not run what is made", async ({ page: browser }) => {
    await openAsViewer(browser, "/new?from=library:quickstart/experiment.yaml");
    await expect(browser.getByText(`You may not create experiments in namespace ${own}`)).toBeVisible();
    await expect(browser.getByRole("button", { name: "Run", exact: true })).toHaveCount(0);
  });

  test("is refused by Kubernetes when he tries", async ({ page: browser }) => {
    await openAsViewer(browser, page);
    const status = await browser.evaluate(async (path) => {
      const answer = await fetch(path, { method: "PATCH", headers: { "content-type": "application/merge-patch+json" }, body: JSON.stringify({ spec: { stop: true } }) });
      return answer.status;
    }, `/k8s/apis/vignette.dev/v1alpha1/namespaces/${own}/experiments/${name}`);
    expect(status).toBe(403);
    expect(kubectl(["get", "experiment", "-n", own, name, "-o", "jsonpath={.spec.stop}"])).toBe("");
  });
});
