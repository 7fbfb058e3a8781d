import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { loadSchemas } from "../text/schema";
import { specOf } from "../text/read";
import { AppFields } from "./AppFields";
import { Editing } from "./actions";

const schemas = await loadSchemas();

function open(apps: string): TextModel {
  const model = new TextModel(`kind: Experiment\nspec:\n  apps: ${apps}\n`);
  openForm(model, [0, 1].map((place) => <div key={place} data-testid={`app ${place}`}><AppFields place={place} /></div>), schemas);
  return model;
}

function appsOf(model: TextModel): unknown {
  const { main } = model.getSnapshot().content;
  return main && specOf(main).apps;
}

const ofApp = (place: number) => within(screen.getByTestId(`app ${place}`));

test("a pair of proxies is added at once, with names that are free", () => {
  const model = new TextModel("kind: Experiment\nspec:\n  apps: [{name: far, mosquitto: {}}]\n");
  const { main } = model.getSnapshot().content;
  if (main) model.edit(new Editing(main).addApp("proxy"));
  expect(appsOf(model)).toEqual([{ name: "far", mosquitto: {} }, { name: "near", proxy: { peer: "far-2" } }, { name: "far-2", proxy: {} }]);
});

test("the near proxy has the settings of both, and the far one says whose they are", async () => {
  const model = open("[{name: near, proxy: {peer: far}}, {name: far, proxy: {}}]");
  const user = userEvent.setup();
  expect(ofApp(0).getByText("near proxy")).toBeTruthy();
  expect(ofApp(1).getByText("The far proxy of near, which has the settings of both.")).toBeTruthy();
  expect(ofApp(1).queryByLabelText("Deadline")).toBeNull();
  await user.selectOptions(ofApp(0).getByLabelText("Compression"), "zstd");
  fill(ofApp(0).getByLabelText("Longest queue"), "50");
  await user.selectOptions(ofApp(0).getByLabelText("Log messages"), "yes");
  expect(appsOf(model)).toEqual([{ name: "near", proxy: { peer: "far", compression: "zstd", maxQueue: 50, logMessages: true } }, { name: "far", proxy: {} }]);
});

test("a pair that speaks AMQP is asked for its RabbitMQ", async () => {
  const model = open("[{name: near, proxy: {peer: far}}, {name: hub, rabbitmq: {}}, {name: far, proxy: {}}]");
  expect(ofApp(0).queryByLabelText("Broker at")).toBeNull();
  await userEvent.selectOptions(ofApp(0).getByLabelText("Protocol"), "amqp");
  await userEvent.selectOptions(ofApp(0).getByLabelText("Broker at"), "hub");
  expect(appsOf(model)).toMatchObject([{ proxy: { peer: "far", protocol: "amqp", broker: "hub" } }, {}, {}]);
});

test("settings of a proxy that has lost its peer are shown, as they have to go", () => {
  open("[{name: near, proxy: {deadline: 30s}}, {name: far, proxy: {}}]");
  expect(ofApp(0).getByLabelText<HTMLInputElement>("Deadline").value).toBe("30s");
});
