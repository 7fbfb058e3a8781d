import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { openForm } from "../../../testing/make";
import { answer } from "../../../testing/page";
import { TextModel } from "../text/model";
import { Matrix } from "./Matrix";

const campaign = `kind: Campaign
metadata: {name: c}
spec:
  matrix:
    axes:
    - name: link
      levels:
      - name: both
        set:
        - {path: drain, value: 5s}
        - {path: duration, value: 60s}
`;

function open(valid = false): TextModel {
  const model = new TextModel(campaign);
  openForm(model, <Matrix model={model} namespace="team" valid={valid} />);
  return model;
}

function values(): string[] {
  return screen.getAllByLabelText<HTMLInputElement>("Value").map((field) => field.value);
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test("one run of one point is counted in words that fit", async () => {
  answer({ "/forecast": { points: 1, runs: 1, normal: "" } });
  open(true);
  expect(await screen.findByText("1 point, 1 run")).toBeTruthy();
});

test("the value of a level is that of the text after a row was removed, undone and left", async () => {
  const model = open();
  const user = userEvent.setup();
  await user.click(screen.getByLabelText("Remove drain"));
  expect(values()).toEqual(["60s"]);
  const text = model.getSnapshot().text;
  await user.click(screen.getByLabelText("Value"));
  await user.tab();
  expect(model.getSnapshot().text).toBe(text);
  await user.click(document.body);
  model.undo();
  expect(await screen.findByDisplayValue("5s")).toBeTruthy();
  expect(values()).toEqual(["5s", "60s"]);
});

test("a number of repeats is typed anew after the field was emptied, and the field stays empty meanwhile", async () => {
  const model = open();
  const user = userEvent.setup();
  const field = screen.getByLabelText<HTMLInputElement>("Repeats of each point");
  await user.type(field, "3");
  expect(model.getSnapshot().text).toContain("  repeats: 3\n");
  await user.clear(field);
  expect(field.value).toBe("");
  await user.type(field, "5");
  expect(model.getSnapshot().text).toContain("  repeats: 5\n");
  await user.clear(field);
  await user.tab();
  expect(model.getSnapshot().text).toBe(campaign);
});

test("a value that is typed is written when the field is left", async () => {
  const model = open();
  const user = userEvent.setup();
  const field = screen.getAllByLabelText("Value")[1];
  if (!field) throw new Error("there is no second value");
  await user.clear(field);
  await user.type(field, "90s");
  expect(model.getSnapshot().text).toBe(campaign);
  await user.tab();
  expect(model.getSnapshot().text).toBe(campaign.replace("60s", "90s"));
});
