import { expect, expectAccessible, expectNoSideways, open, picture, test } from "./harness";

const quickstart = "/new?from=library:quickstart/experiment.yaml";

test("the library's quickstart gets another link, has no errors and may run", async ({ page }) => {
  await open(page, "/new");
  await page.getByLabel("Search the library").fill("quickstart");
  await page.getByRole("link", { name: "quickstart", exact: true }).click();
  const run = page.getByRole("button", { name: "Run", exact: true });
  await expect(run).toBeEnabled();

  const yaml = page.getByRole("textbox", { name: "YAML of the experiment" });
  await page.getByLabel("Waveform").selectOption("own:link");
  await page.getByLabel("Rate", { exact: true }).fill("9.6");
  await expect(yaml).toContainText('link: {rate: "9.6",');
  await expect(page.getByTestId("findings")).toContainText("error");
  await expect(run, "a rate has a unit").toBeDisabled();

  await page.getByLabel("Rate", { exact: true }).fill("9.6kbit");
  await expect(page.getByTestId("findings")).toHaveText(/^No errors/);
  await expect(run).toBeEnabled();
  await expect(yaml, "comments stay").toContainText("# everything, both ways");
  await picture(page, "new");

  await page.getByRole("tab", { name: "Preview" }).click();
  await expect(page.getByRole("row", { name: /^Pods 2$/ })).toBeVisible();
  await expect(page.getByLabel("Difference from the source")).toContainText("+       rate: 9.6kbit");
});

test("what is written in the YAML shows in the form, and undo takes back both", async ({ page }) => {
  await open(page, "/new?from=empty");
  await page.getByLabel("Duration").fill("90s");
  const yaml = page.getByRole("textbox", { name: "YAML of the experiment" });
  await yaml.getByText("seed: 1").click();
  await page.keyboard.press("End");
  await page.keyboard.type("2");
  await expect(page.getByLabel("Seed")).toHaveValue("12");
  const undo = page.getByRole("button", { name: "Undo" });
  await undo.click();
  await expect(page.getByLabel("Seed")).toHaveValue("1");
  await undo.click();
  await expect(page.getByLabel("Duration")).toHaveValue("75s");
});

test("a node is added and connected by keyboard, and the drawing follows", async ({ page }) => {
  await open(page, "/new?from=empty");
  await page.getByRole("tab", { name: "Topology" }).press("Enter");
  await page.getByRole("button", { name: "Add a node" }).press("Enter");
  const shape = page.locator(".react-flow__node", { hasText: "node" });
  await expect(shape).toBeVisible();
  await expect(page.locator(".react-flow__edge")).toHaveCount(3);
  await shape.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("node");
});

test("an experiment becomes a campaign that says how many runs it has", async ({ page }) => {
  await open(page, "/new?from=empty");
  await page.getByRole("tab", { name: "Matrix" }).click();
  await page.getByRole("button", { name: "Make it a campaign" }).click();
  await page.getByRole("button", { name: "Add an axis" }).click();
  await page.getByRole("combobox", { name: "Field" }).fill("networks[wan].link.rate");
  await page.keyboard.press("Escape");
  for (const rate of ["9.6kbit", "100kbit", "1Mbit"]) {
    await page.getByLabel("Values").and(page.locator("input")).fill(rate);
    await page.keyboard.press("Enter");
  }
  await expect(page.getByText(/^3 points, 3 runs, about/)).toBeVisible();
  await expect(page.getByRole("button", { name: "Start the campaign" })).toBeEnabled();
});

for (const scheme of ["light", "dark"] as const) {
  test(`the page is accessible in ${scheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, quickstart);
    await expect(page.getByTestId("findings")).toHaveText(/^No errors/);
    for (const tab of ["Form", "Topology", "Matrix", "Preview"]) {
      await page.getByRole("tab", { name: tab }).click();
      await expect(page.getByRole("tabpanel", { name: tab })).toBeVisible();
      await expectAccessible(page);
    }
  });
}

test("the page fits a phone", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, quickstart);
  await expect(page.getByTestId("findings")).toHaveText(/^No errors/);
  await expectNoSideways(page);
});
