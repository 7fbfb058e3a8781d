import { expect, kubectl, open, picture, test } from "./harness";

// Pictures of what the cluster has. Those of home, new and live are drawn by the tests of their pages.
test.skip(!process.env.PICTURES, "draws pictures only");

interface Named {
  metadata: { name: string; namespace: string; uid: string };
  spec: { scenario?: object; matrix?: { axes?: unknown[] } };
  status?: { phase?: string };
}

function finished(kind: string, phases = ["Succeeded"]): Named[] {
  const { items } = JSON.parse(kubectl(["get", kind, "-A", "-o", "json"])) as { items: Named[] };
  return items.filter(({ status }) => phases.includes(status?.phase ?? ""));
}

const moving = () => {
  const found = finished("experiments").find(({ spec, metadata }) => spec.scenario && metadata.namespace === (process.env.PICTURES_OF ?? metadata.namespace));
  if (!found) throw new Error("no experiment with a scenario has succeeded in this cluster");
  return found.metadata;
};

test("an experiment and its map", async ({ page }) => {
  const { namespace, name } = moving();
  await open(page, `/ns/${namespace}/experiments/${name}`);
  await expect(page.getByText(/^Headline|Timeline/).first()).toBeVisible();
  await page.waitForLoadState("networkidle");
  await picture(page, "experiment");
  await page.getByRole("tab", { name: "Map", exact: true }).click();
  await expect(page.getByRole("img", { name: /Map with .* [1-9]\d* link/ })).toBeVisible();
  await page.locator("[data-map]").scrollIntoViewIfNeeded();
  await picture(page, "map");
});

test("the results of a run", async ({ page }) => {
  const { namespace, uid } = moving();
  await open(page, `/ns/${namespace}/runs/${uid}`);
  await expect(page.getByRole("heading", { name: "Headline" })).toBeVisible();
  await picture(page, "results");
});

test("a campaign as a heat map", async ({ page }) => {
  const axes = ({ spec: { matrix } }: Named) => matrix?.axes?.length ?? 0;
  const [campaign] = finished("campaigns", ["Succeeded", "Suspended"]).sort((a, b) => axes(b) - axes(a));
  if (!campaign) throw new Error("no campaign of this cluster has results");
  await open(page, `/ns/${campaign.metadata.namespace}/campaigns/${campaign.metadata.name}`);
  await expect(page.getByRole("table").first()).toBeVisible();
  await page.waitForLoadState("networkidle");
  await picture(page, "campaign");
});

test("the scenario editor", async ({ page }) => {
  await open(page, "/scenarios/edit");
  const map = page.getByRole("img", { name: /Map with/ });
  for (const position of [{ x: 150, y: 200 }, { x: 260, y: 150 }, { x: 380, y: 260 }]) await map.click({ position });
  await expect(page.getByRole("img", { name: /Map with 3 nodes of 3/ })).toBeVisible();
  await expect(page.getByRole("cell", { name: /hop/ }).first()).toBeVisible();
  await picture(page, "scenario");
});
