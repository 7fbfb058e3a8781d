import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import type { RunState } from "../../archive/runs";
import type { Results as RunResults } from "../../archive/types";
import { answer, openPage } from "../../testing/page";
import { Results } from "./Results";

const state = JSON.parse(readFileSync("src/testing/data/run.json", "utf8")) as RunState;
const uid = state.plan.uid;
const files = { files: [{ path: "results/results.json", bytes: 25646 }, { path: "logs/<b>n</b>/a/stdout-1.log", bytes: 0 }], gaps: null };

afterEach(() => {
  vi.unstubAllGlobals();
});

function open(answers: Record<string, unknown>, search = "") {
  answer(answers);
  return openPage("/ns/$namespace/runs/$uid", Results, `/ns/e5/runs/${uid}${search}`);
}

test("a run shows its headline, its verdict and its groups", async () => {
  open({ [uid]: state });
  await screen.findByRole("heading", { level: 1, name: "e5-cnr-1-nffi-direct-cut-1" });
  expect(screen.getByText("✓ The emulation kept up")).toBeTruthy();
  expect(screen.getByText("Requests with a receipt")).toBeTruthy();
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toContainEqual(expect.stringMatching(/^radiosender and receiver on different nodes810/));
});

test("an archived run can be cloned by whoever may create experiments", async () => {
  open({ [uid]: state, "/selfsubjectaccessreviews": { status: { allowed: true } } });
  const clone = await screen.findByRole("link", { name: "Clone" });
  expect(clone.getAttribute("href")).toBe(`/new?from=${encodeURIComponent(`run:${state.plan.namespace}/${uid}`)}`);
});

test("the part and the search of a run stand in its address", async () => {
  const router = open({ [uid]: state, "/files": files });
  const user = userEvent.setup();
  await user.click(await screen.findByRole("tab", { name: "Files" }));
  await user.type(await screen.findByLabelText("Find by path"), "logs");
  expect(router.state.location.searchStr).toBe("?part=files&find=logs");
  expect(screen.getByText("logs/<b>n</b>/a/stdout-1.log").getAttribute("href")).toMatch(/files\/logs\/%3Cb%3En%3C%2Fb%3E\/a\/stdout-1\.log$|files\/logs\/%3Cb%3En%3C\/b%3E\/a\/stdout-1\.log$/);
  expect(screen.queryByText("results/results.json")).toBeNull();
});

test("another part of a run is not searched for what was sought in the one before", async () => {
  const router = open({ [uid]: state, "/files": files }, "?find=radio&sort=-count");
  await userEvent.setup().click(await screen.findByRole("tab", { name: "Files" }));
  expect(await screen.findByText("results/results.json")).toBeTruthy();
  expect(router.state.location.searchStr).toBe("?part=files");
});

test("the map of a run begins at T0 and has a slider up to its end", async () => {
  const map = { t0: state.plan.t0, durationSeconds: 120, nodes: [{ name: "hq", networks: ["wan"], track: [[0, 58.1, 7.9, 0], [120, 58.2, 7.9, 0]] }], networks: [{ name: "wan", model: "link", links: false }] };
  open({ [uid]: state, "/map": map }, "?part=map");
  const slider = await screen.findByRole("slider");
  expect([slider.getAttribute("aria-valuenow"), slider.getAttribute("aria-valuemax")]).toEqual(["0", "120"]);
  expect(screen.getByText(/\(T0\+0s\)/)).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Go live" })).toBeNull();
});

test("the table of losses has more publishers than the plot, which says so", async () => {
  const [publisher] = state.results?.publishers ?? [];
  const publishers = Array.from({ length: 243 }, (_, i) => ({ ...publisher, name: `veh-${i + 1}/bft` }));
  open({ [uid]: { ...state, results: { ...state.results, groups: [], publishers } } }, "?part=delays");
  const figure = await screen.findByRole("figure", { name: "Deliveries that did not arrive" });
  expect(within(figure).getByText(/The 60 with the greatest losses of 243 are drawn; the table has all\./)).toBeTruthy();
  await userEvent.setup().click(within(figure).getByRole("button", { name: "As a table" }));
  expect(within(figure).getByRole("table").getAttribute("aria-rowcount")).toBe("244");
});

test("bursts have a table of times by protocols, and say how many messages came where some are missing", async () => {
  const burst = { publisherProtocol: "mqtt", subscriberProtocol: "amqp", bursts: 1, messages: 1000, received: 1000, connectedSeconds: 0.2, seconds: 1.5 };
  const bursts = [burst, { ...burst, subscriberProtocol: "stomp", received: 998, seconds: null }, { ...burst, publisherProtocol: "amqp", seconds: 0.25 }];
  open({ [uid]: { ...state, results: { ...state.results, bursts } } }, "?part=bursts");
  const table = await screen.findByRole("table", { name: "Times of bursts by protocols" });
  expect(within(table).getAllByRole("row").map((row) => [...row.children].map((cell) => cell.textContent.trim()))).toEqual([
    [expect.stringContaining("From"), expect.stringContaining("To amqp"), expect.stringContaining("To stomp")],
    ["amqp", "250 ms", "–"],
    ["mqtt", "1.50 s", "998 of 1000"],
  ]);
});

test("a run whose publishers wait for no connection has no part for bursts", async () => {
  open({ [uid]: state });
  await screen.findByRole("tab", { name: "Volume" });
  expect(screen.queryByRole("tab", { name: "Bursts" })).toBeNull();
});

const picture = (JSON.parse(readFileSync("../internal/runapi/testdata/results.json", "utf8")) as RunResults).picture;
const pictured = { ...state, results: { ...state.results, picture } };
const cellsOf = (table: HTMLElement) => within(table).getAllByRole("row").map((row) => [...row.children].map((cell) => cell.textContent.trim()));

test("the picture has error and age by group", async () => {
  open({ [uid]: pictured, "/files": files }, "?part=picture");
  const table = await screen.findByRole("table", { name: "Error and age by group" });
  const figures = ["2", "49.17 %", "89.0 m", "85.0 m", "89.0 m", "89.0 m", "26.1 s", "26.3 s", "52.2 s", "55.1 s"];
  expect(cellsOf(table).slice(1)).toEqual([["all", ...figures], ["nor", ...figures]]);
  expect(screen.getByText(/sampled every 1 s/)).toBeTruthy();
  expect(await screen.findByText("Error of the picture over time: the archive has no results/picture-times.csv.")).toBeTruthy();
});

test("the picture has the error over time, and the pairs with the greatest error", async () => {
  const times = "second,known,pairs,errorMedianMetres,errorP95Metres,ageMedianSeconds,ageP95Seconds\n0,0,2,,,,\n1,1,2,11,12,0.9,0.9\n";
  const header = "subscriber,node,samples,knownPercent,errorMedianMetres,errorMeanMetres,errorP95Metres,errorMaxMetres,ageMedianSeconds,ageMeanSeconds,ageP95Seconds,ageMaxSeconds\n";
  const pairs = `${header}prt/a,usa,60,0,,,,,,,,\nprt/a,nor,60,50,1,2,3,4,5,6,7,8\nprt/b,nor,60,100,10,20,30,40,5,6,7,8\n`;
  const listed = ["picture", "picture-times"].map((name) => ({ path: `results/${name}.csv`, bytes: 1000 }));
  open({ [uid]: pictured, "/files": { files: listed, gaps: null }, "results/picture-times.csv": times, "results/picture.csv": pairs }, "?part=picture");
  expect(cellsOf(await screen.findByRole("table", { name: "Pairs with the greatest error" })).slice(1)).toEqual([
    ["prt/b", "nor", "100 %", "10.0 m", "20.0 m", "30.0 m", "5.00 s", "7.00 s"],
    ["prt/a", "nor", "50 %", "1.00 m", "2.00 m", "3.00 m", "5.00 s", "7.00 s"],
    ["prt/a", "usa", "0 %", "–", "–", "–", "–", "–"],
  ]);
  expect(screen.getByText("All 3 pairs, the greatest mean error first.")).toBeTruthy();
  const figure = await screen.findByRole("figure", { name: "Error of the picture over time" });
  await userEvent.setup().click(within(figure).getByRole("button", { name: "As a table" }));
  expect(cellsOf(within(figure).getByRole("table")).slice(1)).toEqual([["T0+1s", "11.0 m", "12.0 m"]]);
});

test("a run in which nobody reports positions has no part for the picture", async () => {
  open({ [uid]: state });
  await screen.findByRole("tab", { name: "Volume" });
  expect(screen.queryByRole("tab", { name: "Picture" })).toBeNull();
});

test("damaged records of a run are named", async () => {
  open({ [uid]: { ...state, problem: "incidents.json, now incidents.json.damaged: it is not one whole JSON object" } });
  const alert = await screen.findByRole("alert", { name: "This run has damaged records" });
  expect(alert.textContent).toContain("incidents.json, now incidents.json.damaged: it is not one whole JSON object");
});

test("a run without results says why, and its files can be read", async () => {
  const rest = { ...state };
  delete rest.results;
  open({ [uid]: { ...rest, plan: { ...state.plan, phase: "Failed", message: "node nor was lost" } }, "/files": files });
  expect(await screen.findByText("This run has no results")).toBeTruthy();
  expect(screen.getByText("node nor was lost")).toBeTruthy();
  expect(await screen.findByText("results/results.json")).toBeTruthy();
});

test("files of a run that goes on are listed again when it has ended without results", async () => {
  const rest = { ...state };
  delete rest.results;
  const withPhase = (phase: string) => ({ ...rest, plan: { ...state.plan, phase } });
  const answers: Record<string, unknown> = { [uid]: withPhase("Running"), "/files": { files: [], gaps: null } };
  open(answers);
  expect(await screen.findByText("0 files, 0 B")).toBeTruthy();
  Object.assign(answers, { [uid]: withPhase("Failed"), "/files": files });
  expect(await screen.findByText("results/results.json", {}, { timeout: 30_000 })).toBeTruthy();
});

test("nodes with a clock of their own have it beside the delays", async () => {
  const clocks = [{ node: "vm-1", worstOffsetSeconds: 0.0012, worstUncertaintySeconds: 0.0004, setSeconds: 0, measurements: 9 }];
  open({ [uid]: { ...state, results: { ...state.results, clocks } } });
  expect(cellsOf(await screen.findByRole("table", { name: "Clocks of nodes" })).slice(1)).toEqual([["vm-1", "1.20 ms", "400 µs"]]);
});

test("the verdict has the late frames of each network, and a warning without a time no room for one", async () => {
  const warnings = [{ what: "client veh/bft never connected", node: "veh", reason: "it has no log" }, { what: "app veh/bft ended", fromSeconds: 60, reason: "exit code 1" }];
  open({ [uid]: { ...state, results: { ...state.results, warnings } } });
  expect(await screen.findByText("Network link: 6 of 254 frames released late, 0 lost by the emulation")).toBeTruthy();
  expect(screen.getByText("client veh/bft never connected: it has no log")).toBeTruthy();
  expect(screen.getByText("app veh/bft ended, from T0+1m00s: exit code 1")).toBeTruthy();
});

test("a run that cannot be read says so in words", async () => {
  open({});
  expect(await screen.findByText(/^nothing at /)).toBeTruthy();
});

test("results of a later version are not misread", async () => {
  open({ [uid]: { ...state, results: { ...state.results, schemaVersion: 3 } } });
  expect(await screen.findByText(/schema version 3, and this console reads up to 2/)).toBeTruthy();
});

test("the report runs without an origin", async () => {
  open({ [uid]: state }, "?part=report");
  const frame = await screen.findByTitle("Report of the run");
  expect(frame.getAttribute("sandbox")).toBe("allow-scripts");
  expect(frame.getAttribute("src")).toMatch(/\/report$/);
});
