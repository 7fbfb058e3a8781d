// @vitest-environment node
import { expect, test } from "vitest";
import { beginning, placed, placeOf } from "./liveDraft";

test("a change begins with what is selected on the map", () => {
  expect(beginning("change", "wan", "hq", { from: "hq", to: "veh-1" })).toMatchObject({ from: "hq", to: "veh-1" });
  expect(beginning("change", "wan", "hq", undefined)).toMatchObject({ from: "hq", to: "" });
  expect(beginning("silence", "vhf", "veh-1", undefined)).toMatchObject({ from: "veh-1", to: "" });
  expect(beginning("jammer", "vhf", "veh-1", undefined)).toMatchObject({ from: "", to: "" });
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
