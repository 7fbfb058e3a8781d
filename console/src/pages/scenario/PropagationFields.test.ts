// @vitest-environment node
import { expect, test } from "vitest";
import { withModel, withPart } from "./PropagationFields";

test("a model begins with a frequency, and drops what only another model has", () => {
  const logDistance = withPart(withModel(undefined, "LogDistance") as never, "exponent", "3.5");
  expect(logDistance).toEqual({ model: "LogDistance", frequency: "300MHz", exponent: "3.5" });
  expect(withModel(logDistance, "FreeSpace")).toEqual({ model: "FreeSpace", frequency: "300MHz" });
  expect(withModel(logDistance, "")).toBeUndefined();
});

test("a seed is a number, and an emptied field leaves the default", () => {
  const hills = withPart(withModel(undefined, "Diffraction") as never, "syntheticTerrain", "42");
  expect(hills).toMatchObject({ syntheticTerrain: 42 });
  expect(withPart(hills, "syntheticTerrain", "9007199254740993")).toMatchObject({ syntheticTerrain: "9007199254740993" });
  expect(withPart(hills, "syntheticTerrain", "")).not.toHaveProperty("syntheticTerrain");
});
