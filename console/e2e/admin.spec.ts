import { expect, expectAccessible, kubectl, open, test } from "./harness";

test("administration shows each host with its radiod, the queue and the archive", async ({ page }) => {
  const host = kubectl(["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
  await open(page);
  await page.getByRole("link", { name: "Administration" }).click();
  const row = page.getByRole("table", { name: "Hosts" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name: host, exact: true }) });
  await expect(row).toContainText(/ready, .*restart/);
  await expect(row).toContainText(/free of/);
  await expect(page.getByRole("heading", { name: "Queue" })).toBeVisible();
  await expectAccessible(page);
});
