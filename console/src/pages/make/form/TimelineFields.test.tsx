import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { fill, openForm } from "../../../testing/make";
import type { Finding } from "../text/findings";
import { TextModel } from "../text/model";
import { specOf } from "../text/read";
import { TimelineFields } from "./TimelineFields";

vi.mock("../../../kubernetes/hooks", () => ({ useObjects: () => ({ objects: [{ metadata: { name: "vhf" }, spec: { tdma: {} } }] }) }));

const text = `kind: Experiment
spec:
  duration: 75s
  networks: [{name: wan, link: {rate: 1Mbit}}, {name: radio, waveform: vhf}]
  apps: [{name: hub, mosquitto: {}}, {name: units, publisher: {protocol: mqtt, to: hub}}]
  nodes: [{name: hq, networks: [wan], apps: [hub]}, {name: veh, count: 2, group: north, networks: [wan, radio], apps: [units]}]
`;

function open(timeline = "", findings: readonly Finding[] = []): TextModel {
  const model = new TextModel(text + timeline);
  openForm(model, <TimelineFields />, undefined, findings);
  return model;
}

function timelineOf(model: TextModel): unknown {
  const { main } = model.getSnapshot().content;
  return main && specOf(main).timeline;
}

test("a start, a stop and a change of a network are added to an experiment without a timeline", async () => {
  const model = open();
  for (const what of ["Add a start", "Add a stop", "Add a change of a network"]) await userEvent.click(screen.getByRole("button", { name: what }));
  expect(timelineOf(model)).toEqual([{ at: "10s", start: ["units"] }, { at: "75s", stop: ["units"] }, { at: "30s", set: [{ network: "wan", silent: true }] }]);
});

test("the last entry takes the timeline with it, and the text is as before", async () => {
  const model = open();
  await userEvent.click(screen.getByRole("button", { name: "Add a start" }));
  await userEvent.click(screen.getByRole("button", { name: "Remove entry 1 of the timeline, at 10s" }));
  expect(model.getSnapshot().text).toBe(text);
});

test("an app may start on one group or node alone, and a list without names goes", async () => {
  const model = open("  timeline:\n  - {at: 5s, start: [units]}   # comes late\n");
  const user = userEvent.setup();
  await user.click(screen.getByRole("combobox", { name: "Stop" }));
  await user.click(await screen.findByRole("option", { name: "north/units" }));
  expect(timelineOf(model)).toEqual([{ at: "5s", start: ["units"], stop: ["north/units"] }]);
  await user.click(screen.getByRole("combobox", { name: "Start" }));
  await user.click(within(screen.getByRole("listbox", { name: "Start" })).getByRole("option", { name: "units" }));
  expect(model.getSnapshot().text).toBe(`${text}  timeline:\n  - {at: 5s, stop: [north/units]}   # comes late\n`);
});

test("a silence of a link becomes other values, whose last one takes them along", async () => {
  const model = open("  timeline: [{at: 5s, set: [{network: wan, silent: true}]}]\n");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Change"), "other values");
  fill(screen.getByLabelText("Rate"), "9.6kbit");
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "wan", link: { loss: "10%", rate: "9.6kbit" } }] }]);
  await user.clear(screen.getByLabelText("Loss"));
  await user.clear(screen.getByLabelText("Rate"));
  await user.tab();
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "wan" }] }]);
});

test("what the form of a change does not offer first is shown where the text has it", () => {
  open("  timeline: [{at: 5s, set: [{network: wan, link: {gilbertElliott: {goodToBad: 1%, badToGood: 25%}, limit: 50}}]}]\n");
  expect(screen.getByLabelText<HTMLInputElement>("Bursts: bad to good").value).toBe("25%");
  expect(screen.getByLabelText<HTMLInputElement>("Limit, frames").value).toBe("50");
  expect(screen.queryByLabelText("Duplicate")).toBeNull();
});

test("radios of one node are silenced, all again, and a jammer takes their place", async () => {
  const model = open("  timeline: [{at: 5s, set: [{network: radio, silent: true}]}]\n");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Radios of"), "veh-2");
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "radio", from: "veh-2", radio: { transmit: false } }] }]);
  await user.selectOptions(screen.getByLabelText("Silent"), "no");
  await user.selectOptions(screen.getByLabelText("Radios of"), "all");
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "radio", silent: false }] }]);
  await user.selectOptions(screen.getByLabelText("Change"), "jammer");
  expect(screen.getByLabelText<HTMLInputElement>("Name of the jammer").value).toBe("noise");
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "radio", jammer: { name: "noise", power: "10W", pathloss: "90dB" } }] }]);
});

test("a network is offered only what its model takes", () => {
  open("  timeline: [{at: 5s, set: [{network: wan, silent: true}, {network: radio, silent: true}]}]\n");
  const offered = ["wan", "radio"].map((network) => within(within(screen.getByRole("group", { name: `change of ${network}` })).getByLabelText("Change")).getAllByRole("option").map((option) => option.textContent));
  expect(offered).toEqual([["other values", "silence"], ["other values", "silence", "jammer"]]);
});

test("errors of an entry and of a change as a whole stand in it", () => {
  open("  timeline: [{at: 5s}, {at: 9s, set: [{network: wan, radio: {transmitPower: 1W}}, {network: radio, jammer: {name: noise, power: 1W}}]}]\n", [
    { path: "spec.timeline[0]", message: "an entry needs start, stop or set" },
    { path: "spec.timeline[9s].set", message: "there is no network gone" },
    { path: "spec.timeline[1].set[0].radio", message: "radio is for rfpipe" },
    { path: "spec.timeline[1].set[1].jammer.position", message: "a jammer needs its position" },
  ]);
  const inGroup = (name: RegExp | string) => within(screen.getByRole("group", { name }));
  expect(inGroup(/^entry 1 /).getByText("an entry needs start, stop or set")).toBeTruthy();
  expect(inGroup(/^entry 2 /).getByText("there is no network gone")).toBeTruthy();
  expect(inGroup("change of wan").getByText("radio is for rfpipe")).toBeTruthy();
  expect(inGroup("change of radio").getByText("a jammer needs its position")).toBeTruthy();
});

test("a link has no node that is silent: a silence that names one becomes that of the network", async () => {
  const model = open("  timeline: [{at: 5s, set: [{network: wan, from: hq, silent: true}]}]\n");
  await userEvent.selectOptions(screen.getByLabelText("Silent"), "no");
  expect(timelineOf(model)).toEqual([{ at: "5s", set: [{ network: "wan", silent: false }] }]);
});
