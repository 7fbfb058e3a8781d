import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { specOf } from "../text/read";
import { loadSchemas } from "../text/schema";
import { Form } from "./Form";

vi.mock("../../../kubernetes/hooks", () => ({ useObjects: () => ({ objects: [] }) }));

const schemas = await loadSchemas();

function open(spec: string): TextModel {
  const model = new TextModel(`kind: Experiment\nspec:\n${spec}`);
  openForm(model, <Form />, schemas);
  return model;
}

function spec(model: TextModel) {
  const { main } = model.getSnapshot().content;
  return main && specOf(main);
}

test("topics, the lead and the broker's transport of a study with ZeroMQ are in the form", async () => {
  const model = open("  apps: [{name: broker, zeromqBroker: {}}, {name: pubs, publisher: {protocol: zeromq, to: broker}}]\n");
  await userEvent.selectOptions(screen.getByLabelText("Transport"), "pgm");
  fill(screen.getByLabelText("Topic"), "e8/{instance}/data");
  fill(screen.getByLabelText("Lead"), "15s");
  expect(spec(model)?.apps).toMatchObject([{ zeromqBroker: { transport: "pgm" } }, { publisher: { topic: "e8/{instance}/data", lead: "15s" } }]);
});

test("the drain and captures are in the form, and go as they came", async () => {
  const model = open("  networks: [{name: wan}, {name: radio}]\n");
  const user = userEvent.setup();
  fill(screen.getByLabelText("Drain up to"), "60s");
  fill(screen.getByLabelText("Quiet for"), "35s");
  await user.click(screen.getByRole("combobox", { name: "Captures" }));
  await user.click(within(screen.getByRole("listbox", { name: "Captures" })).getByRole("option", { name: "radio" }));
  expect(spec(model)).toMatchObject({ drain: { max: "60s", quietFor: "35s" }, collect: { captures: ["radio"] } });
  await user.keyboard("{Backspace}");
  for (const label of ["Drain up to", "Quiet for"]) await user.clear(screen.getByLabelText(label));
  await user.tab();
  expect(spec(model)).toEqual({ networks: [{ name: "wan" }, { name: "radio" }] });
});
