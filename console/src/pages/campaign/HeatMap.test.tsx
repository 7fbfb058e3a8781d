import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openPage } from "../../testing/page";
import type { Campaign } from "../../types";
import { Round } from "./Round";
import { runsOfStatus, selected } from "./round";

const campaign = JSON.parse(readFileSync("src/testing/data/campaign.json", "utf8")) as Campaign;
const runs = runsOfStatus(campaign);

function open(shown = runs, search = "") {
  return openPage("/map", () => <Round namespace="e5" campaign={campaign} runs={shown} archived={false} />, `/map${search}`);
}

test("a cell of several runs lists them, and the choice stands in the address", async () => {
  const router = open();
  await userEvent.setup().click(await screen.findByRole("button", { name: /^way direct, network cnr-1: Delivered .* %, 4 runs$/ }));
  expect(router.state.location.searchStr).toBe("?cell=direct&row=cnr-1");
  expect(await screen.findByText("way direct, network cnr-1: 4 runs")).toBeTruthy();
  expect(screen.getAllByRole("link", { name: /^e5-/ })).toHaveLength(4);
});

test("a cell of one run leads to its results, by keyboard too", async () => {
  const router = open(selected(runs, { service: "nffi", link: "whole" }), "?axis.service=nffi&axis.link=whole");
  const user = userEvent.setup();
  const first = await screen.findByRole("link", { name: /^way direct, network cnr-1: / });
  first.focus();
  await user.keyboard("{ArrowRight}");
  expect(document.activeElement?.getAttribute("aria-label")).toMatch(/^way http, network cnr-1: /);
  await user.keyboard("{Enter}");
  expect(router.state.location.pathname).toMatch(/^\/ns\/e5\/runs\//);
});

test("the map is reached by keyboard when its axes have changed to fewer levels", async () => {
  const router = open();
  const cells = await screen.findAllByRole("button", { name: /^way .*, network .*: / });
  cells.at(-1)?.focus();
  await router.navigate({ to: ".", search: { x: "service", y: "link" } } as never);
  await screen.findAllByRole("button", { name: /^service .*, link .*: / });
  expect([...screen.getByRole("grid").querySelectorAll("[data-cell]")].filter((cell) => (cell as HTMLElement).tabIndex === 0)).toHaveLength(1);
});

test("runs that have not begun are said to be pending", async () => {
  open();
  const cell = await screen.findByRole("button", { name: /^way amqp, network wifi-2: Delivered pending, 4 runs$/ });
  expect(cell.textContent).toBe("pending");
});

test("repeats whose records have no digest of their spec are said to be perhaps of different ones", async () => {
  const [first] = runs;
  if (!first) throw new Error("the campaign has no run");
  const { specDigest, ...old } = first;
  expect(specDigest).toBeDefined();
  open([...runs, ...["a", "b"].map((name) => ({ ...old, name, uid: name, point: "old" }))]);
  expect(await screen.findByText(/ may have different specs\.$/)).toBeTruthy();
});

test("runs of an earlier spec are said to be left out", async () => {
  const [first] = runs;
  if (!first) throw new Error("the campaign has no run");
  open([...runs, { ...first, name: "edited", uid: "edited", specDigest: "edited" }]);
  expect(await screen.findByText(/ Left out: 1 run of an earlier spec\.$/)).toBeTruthy();
});
