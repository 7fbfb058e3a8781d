import type { Page } from "@playwright/test";
import { expect, open, test } from "./harness";
import { serveMapWorld, terminalPage } from "./mapWorld";

// One byte names the channel: 1 is the output of the shell.
function output(text: string): Buffer {
  return Buffer.concat([Buffer.from([1]), Buffer.from(text)]);
}

/** openShell opens a terminal whose other side writes a text. */
async function openShell(page: Page, text: string): Promise<void> {
  await serveMapWorld(page);
  await page.routeWebSocket(/\/exec\?/, (socket) => {
    socket.send(output(text));
  });
  await open(page, terminalPage);
  await page.getByRole("button", { name: "Open a shell" }).click();
}

function colourOf(page: Page, word: string, which: "color" | "backgroundColor"): Promise<string> {
  return page.locator(".xterm-rows span", { hasText: word }).first().evaluate((element, name) => getComputedStyle(element)[name], which);
}

test("a terminal shows 16, 256 and 16 million colours under the content security policy", async ({ page }) => {
  await openShell(page, "\x1b[31mnamed\x1b[0m \x1b[38;5;208mindexed\x1b[0m \x1b[38;2;10;200;30mtrue\x1b[0m \x1b[48;2;20;30;140mground\x1b[0m \x1b[1;38;2;250;128;114mbold\x1b[0m plain\r\n");
  await expect(page.locator(".xterm-rows")).toContainText("named indexed true ground bold plain");
  expect(await colourOf(page, "named", "color")).toBe("rgb(204, 0, 0)");
  expect(await colourOf(page, "indexed", "color")).toBe("rgb(255, 135, 0)");
  expect(await colourOf(page, "true", "color")).toBe("rgb(10, 200, 30)");
  expect(await colourOf(page, "ground", "backgroundColor")).toBe("rgb(20, 30, 140)");
  expect(await colourOf(page, "bold", "color")).toBe("rgb(250, 128, 114)");
});
