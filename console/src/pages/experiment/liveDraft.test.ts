// @vitest-environment node
import { expect, test } from "vitest";
import { beginning, changesOf, placed, placeOf } from "./liveDraft";

test("a change begins with what is selected on the map", () => {
  expect(beginning("change", "wan", "hq", { from: "hq", to: "veh-1" })).toMatchObject({ from: "hq", to: "veh-1" });
  expect(beginning("change", "wan", "hq", undefined)).toMatchObject({ from: "hq", to: "" });
  expect(beginning("silence", "vhf", "veh-1", undefined)).toMatchObject({ from: "veh-1", to: "" });
  expect(beginning("jammer", "vhf", "veh-1", undefined)).toMatchObject({ from: "", to: "" });
});

test("a change is named for what it does: radios send to all, links to one", () => {
  const link = { from: "hq", to: "veh-1" };
  const labels = (...args: Parameters<typeof changesOf>) => changesOf(...args).map(({ label }) => label);
  expect(labels("rfpipe", "vhf", undefined, link)).toEqual(["Change the radio of hq", "Change the radio of veh-1"]);
  expect(changesOf("rfpipe", "vhf", undefined, link)[1]?.draft).toMatchObject({ from: "veh-1", to: "" });
  expect(labels("link", "wan", undefined, link)).toEqual(["Change the link hq – veh-1"]);
  expect(changesOf("link", "wan", undefined, link)[0]?.draft).toMatchObject(link);
  expect(labels("link", "wan", "hq", undefined)).toEqual(["Change the links from hq"]);
  expect(labels("tdma", "vhf", "hq", undefined)).toEqual(["Change the radio of hq"]);
  expect(labels("tdma", "vhf", undefined, undefined)).toEqual(["Change network vhf"]);
});

test("a jammer stands where it was placed", () => {
  const draft = placed(beginning("jammer", "vhf", undefined, undefined), { latitude: 58.123456, longitude: -7.9 });
  expect(draft.values).toMatchObject({ latitude: "58.12346", longitude: "-7.90000" });
  expect(placeOf(draft)).toEqual({ latitude: 58.12346, longitude: -7.9 });
});

test("what is no position is shown nowhere", () => {
  const draft = beginning("jammer", "vhf", undefined, undefined);
  expect(placeOf(draft)).toBeUndefined();
  expect(placeOf({ ...draft, values: { latitude: "north", longitude: "8" } })).toBeUndefined();
  expect(placeOf({ ...draft, values: { latitude: "95", longitude: "8" } })).toBeUndefined();
});
