import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { read, specOf } from "../text/read";
import { loadSchemas } from "../text/schema";
import { Editing } from "./actions";
import { AppFields } from "./AppFields";

const schemas = await loadSchemas();

function appsOf(model: TextModel): unknown {
  const { main } = model.getSnapshot().content;
  return main && specOf(main).apps;
}

test("a gateway goes before a broker of MQTT, and says so", async () => {
  const model = new TextModel("kind: Experiment\nspec:\n  apps: [{name: gate, mqttsnGateway: {to: gone}}, {name: hub, vernemq: {}}, {name: chat, prosody: {}}]\n");
  openForm(model, <AppFields place={0} />, schemas);
  const user = userEvent.setup();
  expect(within(screen.getByLabelText("Broker at")).getAllByRole("option").map((option) => option.textContent)).toEqual(["–", "gone", "hub"]);
  await user.selectOptions(screen.getByLabelText("Broker at"), "hub");
  await user.selectOptions(screen.getByLabelText("Mode"), "Aggregating");
  fill(screen.getByLabelText("Most clients"), "8");
  fill(screen.getByLabelText("Advertise every"), "1m");
  expect(appsOf(model)).toMatchObject([{ mqttsnGateway: { to: "hub", mode: "Aggregating", maxClients: 8, advertise: "1m" } }, {}, {}]);
  await user.clear(screen.getByLabelText("Advertise every"));
  await user.tab();
  expect(appsOf(model)).toMatchObject([{ mqttsnGateway: { to: "hub", mode: "Aggregating", maxClients: 8 } }, {}, {}]);
});

test("an added gateway goes before the first broker of MQTT", () => {
  const model = new TextModel("kind: Experiment\nspec:\n  apps: [{name: chat, prosody: {}}, {name: hub, mosquitto: {}}]\n");
  const main = read(model.getSnapshot().text).main;
  if (main) model.edit(new Editing(main).addApp("mqttsnGateway"));
  expect(appsOf(model)).toMatchObject([{}, {}, { name: "gateway", mqttsnGateway: { to: "hub" } }]);
});
