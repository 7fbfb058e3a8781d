import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import type { Comparison } from "../../archive/comparison";
import { answer, openPage } from "../../testing/page";
import { Compare } from "./Compare";

const comparison = JSON.parse(readFileSync("src/testing/data/comparison.json", "utf8")) as Comparison;
const [one, two] = comparison.runs as [Comparison["runs"][number], Comparison["runs"][number]];
const summaries = [one, two].map(({ namespace, experiment, uid }) => ({ namespace, name: experiment, uid, phase: "Succeeded" }));

afterEach(() => {
  vi.unstubAllGlobals();
});

test("what differs comes before what was measured", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  const differs = await screen.findByRole("table", { name: "What differs in the specification" });
  expect(within(differs).getByText("apps.service.messaging.via")).toBeTruthy();
  const side = screen.getByRole("table", { name: "Runs side by side" });
  expect(differs.compareDocumentPosition(side) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
  expect(screen.getByRole("table", { name: "Differences of group radio" }).textContent).toContain("+3.20 s [+296 ms, +18.8 s]");
});

test("runs that are chosen from the list stand in the address", async () => {
  answer({ "/compare": comparison, "/runs": summaries, "/session": { namespace: "e5" } });
  const router = openPage("/compare", Compare, "/compare");
  const user = userEvent.setup();
  await user.click(await screen.findByLabelText(`Compare ${one.experiment}`));
  expect(screen.getByRole("link", { name: one.experiment }).getAttribute("href")).toBe(`/ns/e5/runs/${one.uid}`);
  await user.click(await screen.findByLabelText(`Compare ${two.experiment}`));
  expect(router.state.location.searchStr).toBe(`?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByRole("table", { name: "Runs side by side" })).toBeTruthy();
});

test("the list of runs has their sizes, and whether they kept up", async () => {
  answer({ "/compare": comparison, "/runs": [{ ...summaries[0], bytes: 1_234_567, keptUp: false }, summaries[1]] });
  openPage("/compare", Compare, "/compare");
  const [heads, first, second] = cellsOf(await screen.findByRole("table", { name: "Archived runs" }));
  const at = heads?.indexOf("Size") ?? -1;
  expect([first?.slice(at - 2, at + 1), second?.slice(at - 2, at + 1)]).toEqual([["no", "", "1.18 MiB"], ["–", "", "–"]]);
});

test("a comparison that the server refuses says why", async () => {
  answer({ "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByText(/^nothing at .*compare$/)).toBeTruthy();
});

test("a run whose record is refused does not stay in reading", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(await screen.findByText(new RegExp(`^nothing at .*${one.uid}$`))).toBeTruthy();
  expect(screen.queryByText("The records of the runs are being read.")).toBeNull();
});

const cellsOf = (table: HTMLElement) => within(table).getAllByRole("row").map((row) => [...row.children].map((cell) => cell.textContent.trim()));

test("the mean delay stands beside its interval", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  const [heads, first] = cellsOf(await screen.findByRole("table", { name: "Runs side by side" }));
  const at = heads?.indexOf("95 % interval of mean") ?? -1;
  expect(first?.slice(at - 1, at + 1)).toEqual(["1.46 s", "[1.44 s, 1.48 s]"]);
});

test("the verdict of a run that did not keep up leads to its gaps, and has the reason", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?of=runs&run=e5/${one.uid}&run=e5/${two.uid}`);
  const verdict = await screen.findByTitle(/^the emulation did not keep up: the median of the delay/);
  expect(verdict.textContent).toBe("no: why?");
  expect(verdict.getAttribute("href")).toMatch(/^\/ns\/e5\/runs\/d0d8c197.*\?part=gaps$/);
});

test("what networks carried stands side by side", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(cellsOf(await screen.findByRole("table", { name: "Data volume by network" }))).toEqual([
    ["Run or condition", "link"],
    [one.label, "434 B/s"],
    [two.label, "984 B/s"],
  ]);
});

test("what networks carried is of repeats together, or of each run", async () => {
  const means = [{ label: "both", bytesPerSecond: 708.8, confidence: { bytesPerSecond: { low: 0, high: 4199 } } }];
  const networks = (comparison.networks ?? []).map((network) => ({ ...network, conditions: means }));
  const repeats = { ...comparison, conditions: [{ label: "both", runs: [one.uid, two.uid], unit: "run" }], networks };
  answer({ "/compare": repeats, "/runs": summaries });
  const router = openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  const volumes = async () => cellsOf(await screen.findByRole("table", { name: "Data volume by network" })).slice(1);
  expect(await volumes()).toEqual([["both (2)", "709 B/s [0 B/s, 4.20 kB/s]"]]);
  await router.navigate({ to: `/compare?of=runs&run=e5/${one.uid}&run=e5/${two.uid}` });
  await waitFor(async () => {
    expect(await volumes()).toEqual([
      [one.label, "434 B/s"],
      [two.label, "984 B/s"],
    ]);
  });
});

test("repeats of a server that gives no volume of conditions have those of runs", async () => {
  answer({ "/compare": { ...comparison, conditions: [{ label: "both", runs: [one.uid, two.uid], unit: "run" }] }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(cellsOf(await screen.findByRole("table", { name: "Data volume by network" }))).toHaveLength(3);
});

const [radio] = comparison.groups as [Comparison["groups"][number]];
const answered = {
  from: one.label,
  to: two.label,
  delay: { shiftSeconds: { estimate: 4.513, low: 3.2, high: 4.8 }, cliffsDelta: { estimate: 1, low: 0.44, high: 1 }, brunnerMunzel: { p: 0.0167, pHolm: 0.0167 } },
  loss: { percentagePoints: { estimate: 40, low: -3.4, high: 83.4 }, welch: { p: 0.07, pHolm: 0.07 } },
};

test("differences of requests follow those of deliveries, in groups and in axes", async () => {
  const group = { ...radio, requestDifferences: [answered] };
  answer({ "/compare": { ...comparison, groups: [group], axes: [{ axis: "way", groups: [group] }] }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  for (const of of ["radio", "way of radio"]) {
    const table = await screen.findByRole("table", { name: `Differences of requests of group ${of}` });
    expect(cellsOf(table)).toEqual([
      ["From → to", "Shift of response times", "Cliff's delta", "p (Holm)", "Difference without a receipt", "p without a receipt (Holm)", "In words"],
      [`${one.label} → ${two.label}`, "+4.51 s [+3.20 s, +4.80 s]", "1.00 [0.44, 1.00]", "0.017", "+40.00 points [-3.40 points, +83.40 points]", "0.070", `A response time of ${two.label} is longer than one of ${one.label} in 100 % of pairs, ties counting half.`],
    ]);
    expect(screen.getByRole("table", { name: `Differences of group ${of}` }).compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    expect(screen.getByRole("heading", { name: `Effect on response times of group ${of}` })).toBeTruthy();
  }
});

test("conditions without any receipt have no plot of response times", async () => {
  answer({ "/compare": { ...comparison, groups: [{ ...radio, requestDifferences: [{ ...answered, delay: null }] }] }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect((await screen.findByRole("table", { name: "Differences of requests of group radio" })).textContent).toContain("Response times cannot be compared.");
  expect(screen.queryByRole("heading", { name: /^Effect on response times/ })).toBeNull();
});

test("runs without requests have no differences of them", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Differences of group radio" });
  expect(screen.queryByRole("table", { name: /^Differences of requests/ })).toBeNull();
});

test("every publisher has a row for each run that has it", async () => {
  const messages = { triggered: 12, sent: 10, expected: 18, offered: 20, received: 15, lost: 3, neverSent: 2, duplicates: 0, lostPercent: 15, deliveredPercent: 75 };
  const delaySeconds = { min: 0.1, p25: 0.2, median: 0.3, mean: 0.4, p75: 0.5, p95: 0.6, max: 1.7 };
  const publishers = [
    { name: "veh-1/bft", node: "veh-1", runs: [{ label: one.label, messages, delaySeconds }, { label: two.label, messages: { ...messages, received: 0, deliveredPercent: 0 }, delaySeconds: null }] },
    { name: "hq/chat", node: "hq", runs: [{ label: one.label, messages: null, delaySeconds: null }, { label: two.label, messages, delaySeconds }] },
  ];
  answer({ "/compare": { ...comparison, publishers }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(cellsOf(await screen.findByRole("table", { name: "Publishers" }))).toEqual([
    ["Publisher", "Node", "Run", "Sent", "Offered", "Delivered", "Lost", "Median delay", "Mean delay", "95th percentile", "Greatest"],
    ["veh-1/bft", "veh-1", one.label, "10", "20", "75 %", "3", "300 ms", "400 ms", "600 ms", "1.70 s"],
    ["veh-1/bft", "veh-1", two.label, "10", "20", "0 %", "3", "–", "–", "–", "–"],
    ["hq/chat", "hq", two.label, "10", "20", "75 %", "3", "300 ms", "400 ms", "600 ms", "1.70 s"],
  ]);
});

test("sizes of messages and medians of the picture stand side by side", async () => {
  const messageSizes = [
    { protocol: "mqtt", runs: [{ label: one.label, medianBytes: 1034 }, { label: two.label, medianBytes: null }] },
    { protocol: "coap", runs: [{ label: one.label, medianBytes: null }, { label: two.label, medianBytes: 282 }] },
  ];
  const picture = [{ name: "all", runs: [{ label: one.label, errorMedianMetres: 88.956, ageMedianSeconds: 26.1 }, { label: two.label, errorMedianMetres: null, ageMedianSeconds: null }] }];
  answer({ "/compare": { ...comparison, messageSizes, picture }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  expect(cellsOf(await screen.findByRole("table", { name: "Message on the wire" }))).toEqual([
    ["Run", "mqtt", "coap"],
    [one.label, "1\u202f034 B", "–"],
    [two.label, "–", "282 B"],
  ]);
  expect(cellsOf(screen.getByRole("table", { name: "Picture of the nodes" }))).toEqual([
    ["Group of the node", "Run", "Error, median", "Age, median"],
    ["all", one.label, "89.0 m", "26.1 s"],
    ["all", two.label, "–", "–"],
  ]);
});

test("runs without captures and positions have no tables of them", async () => {
  answer({ "/compare": { ...comparison, messageSizes: null, picture: null }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  expect(screen.queryByRole("heading", { name: "Message on the wire" })).toBeNull();
  expect(screen.queryByRole("heading", { name: "Picture of the nodes" })).toBeNull();
});

const reference = {
  covered: 0,
  notCovered: 1,
  withoutInterval: 0,
  notMeasured: 0,
  figures: [{ source: "paper.csv", label: two.label, runs: 1, group: "radio", metric: "medianSeconds", value: 2, measured: 4.6, interval: { low: 4, high: 5 }, difference: 2.6, differencePercent: 130, covered: false, withinLateness: false, note: "made up" }],
};

test("reference figures stand beside those of the runs", async () => {
  answer({ "/compare": { ...comparison, reference }, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  const table = await screen.findByRole("table", { name: "Reference figures" });
  expect(table.textContent).toContain("4.60 s [4.00 s, 5.00 s]");
  expect(screen.getByText(/covers 0, and not 1\./)).toBeTruthy();
  expect(within(screen.getByRole("table", { name: "Runs side by side" })).getByText("medianSeconds 2.00 s: not covered")).toBeTruthy();
});

test("a chosen file of reference figures goes with the comparison and its downloads", async () => {
  const asked = answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  expect(screen.queryByRole("table", { name: "Reference figures" })).toBeNull();
  const user = userEvent.setup();
  await user.upload(fileInput(), paper);
  await waitFor(() => {
    expect(asked.some((path) => path.includes("reference=run%2Cmetric%2Cvalue%0A&referenceName=paper.csv"))).toBe(true);
  });
  expect((await screen.findByRole("link", { name: "CSV" })).getAttribute("href")).toContain("referenceName=paper.csv");
  await user.click(screen.getByLabelText("Leave out paper.csv"));
  expect((await screen.findByRole("link", { name: "CSV" })).getAttribute("href")).not.toContain("reference");
});

function fileInput(): HTMLInputElement {
  const input = document.querySelector<HTMLInputElement>("input[type=file]");
  if (!input) throw new Error("there is nowhere to choose a file");
  return input;
}

const paper = new File(["run,metric,value\n"], "paper.csv", { type: "text/csv" });

test("a file of reference figures that was left out can be chosen again", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  const user = userEvent.setup();
  await user.upload(fileInput(), paper);
  await user.click(await screen.findByLabelText("Leave out paper.csv"));
  expect(fileInput().files).toHaveLength(0); // a browser reports no change of a file that is there already
  await user.upload(fileInput(), paper);
  expect(await screen.findByLabelText("Leave out paper.csv")).toBeTruthy();
});

test("a file of reference figures that is no text in UTF-8 is refused", async () => {
  const asked = answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  await userEvent.setup().upload(fileInput(), new File([new Uint8Array([0x63, 0x61, 0x66, 0xe9])], "paper.csv", { type: "text/csv" }));
  expect(await screen.findByText("paper.csv is no text in UTF-8: save it as CSV in UTF-8.")).toBeTruthy();
  expect(asked.some((path) => path.includes("reference"))).toBe(false);
});

test("a refusal goes with the file that was there before", async () => {
  answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  const user = userEvent.setup();
  await user.upload(fileInput(), paper);
  await screen.findByLabelText("Leave out paper.csv");
  await user.upload(fileInput(), new File(["x".repeat(40_000)], "long.csv", { type: "text/csv" }));
  expect(await screen.findByText("long.csv has 40000 bytes: want 32768 at most.")).toBeTruthy();
  await user.click(screen.getByLabelText("Leave out paper.csv"));
  expect(screen.queryByText(/long\.csv has/)).toBeNull();
});

test("a file of reference figures goes when one of its runs is chosen no longer", async () => {
  answer({ "/compare": comparison, "/runs": summaries, "/session": { namespace: "e5" } });
  const router = openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  const user = userEvent.setup();
  await user.upload(fileInput(), paper);
  await screen.findByLabelText("Leave out paper.csv");
  await router.navigate({ to: `/compare?run=e5/${one.uid}&run=e5/other` });
  await waitFor(() => {
    expect(screen.queryByLabelText("Leave out paper.csv")).toBeNull();
  });
});

test("a file of reference figures that is too large is refused", async () => {
  const asked = answer({ "/compare": comparison, "/runs": summaries });
  openPage("/compare", Compare, `/compare?run=e5/${one.uid}&run=e5/${two.uid}`);
  await screen.findByRole("table", { name: "Runs side by side" });
  await userEvent.setup().upload(fileInput(), new File(["x".repeat(40_000)], "paper.csv", { type: "text/csv" }));
  expect(await screen.findByText("paper.csv has 40000 bytes: want 32768 at most.")).toBeTruthy();
  expect(asked.some((path) => path.includes("reference"))).toBe(false);
});
