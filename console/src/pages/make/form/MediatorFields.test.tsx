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

test("a mediator begins between two brokers, and gets a third", async () => {
  const brokers = "{name: hub, mosquitto: {}}, {name: chat, prosody: {}}, {name: zero, zeromqBroker: {}}";
  const model = new TextModel(`kind: Experiment\nspec:\n  apps: [${brokers}]\n`);
  const main = read(model.getSnapshot().text).main;
  if (main) model.edit(new Editing(main).addApp("mediator"));
  openForm(model, <AppFields place={3} />, schemas);
  await userEvent.click(screen.getByRole("button", { name: "Add a leg" }));
  expect(appsOf(model)).toMatchObject([{}, {}, {}, { name: "mediator", mediator: { legs: [{ protocol: "mqtt", to: "hub" }, { protocol: "xmpp", to: "chat" }, { protocol: "zeromq", to: "zero" }] } }]);
});

test("a leg has its broker, QoS, topics and prefix, and goes", async () => {
  const model = new TextModel('kind: Experiment\nspec:\n  apps: [{name: hub, mosquitto: {}}, {name: chat, prosody: {}}, {name: between, mediator: {legs: [{protocol: mqtt, to: hub}, {protocol: xmpp, to: gone, qos: 1}]}}]\n');
  openForm(model, <AppFields place={2} />, schemas);
  const user = userEvent.setup();
  const leg = within(screen.getByRole("group", { name: "leg 1, to hub" }));
  await user.selectOptions(leg.getByLabelText("QoS"), "2");
  await user.type(leg.getByRole("combobox", { name: "Topics" }), "units/#{Enter}");
  fill(leg.getByLabelText("Prefix"), "nor/");
  await user.selectOptions(within(screen.getByRole("group", { name: "leg 2, to gone" })).getByLabelText("Broker at"), "chat");
  expect(appsOf(model)).toMatchObject([{}, {}, { mediator: { legs: [{ protocol: "mqtt", to: "hub", qos: 2, topics: ["units/#"], prefix: "nor/" }, { protocol: "xmpp", to: "chat", qos: 1 }] } }]);
  await user.click(screen.getByRole("button", { name: "Remove leg 1, to hub" }));
  expect(appsOf(model)).toMatchObject([{}, {}, { mediator: { legs: [{ protocol: "xmpp", to: "chat", qos: 1 }] } }]);
  await user.click(screen.getByRole("button", { name: "Add a leg" }));
  expect(appsOf(model)).toMatchObject([{}, {}, { mediator: { legs: [{ protocol: "xmpp", to: "chat" }, { protocol: "mqtt", to: "hub" }] } }]);
});
