import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { read, specOf } from "../text/read";
import { loadSchemas } from "../text/schema";
import { Editing } from "./actions";
import { AppFields } from "./AppFields";

const nodes = "  nodes: [{name: a, count: 2, group: units, apps: [own]}, {name: hq}]\n";

const schemas = await loadSchemas();

function open(apps: string): TextModel {
  const model = new TextModel(`kind: Experiment\nspec:\n  networks: [{name: wan}]\n  apps:\n${apps}${nodes}`);
  openForm(model, <AppFields place={0} />, schemas);
  return model;
}

function appOf(model: TextModel): unknown {
  const { main } = model.getSnapshot().content;
  return main && (specOf(main).apps as unknown[])[0];
}

/** added is an app of a kind beside others, without a name. */
function added(kind: string, others: string): unknown {
  const model = new TextModel(`kind: Experiment\nspec:\n  apps: [${others}]\n${nodes}`);
  const main = read(model.getSnapshot().text).main;
  if (main) model.edit(new Editing(main).addApp(kind));
  const { main: after } = model.getSnapshot().content;
  return after && (specOf(after).apps as unknown[]).at(-1);
}

test("a script of MGEN keeps its lines and comments, and moves to a ConfigMap and back", async () => {
  const model = open("  - name: own\n    mgen:\n      script: |\n        # voice\n        0.0 LISTEN UDP 5000\n    resources: {}\n");
  const script = screen.getByLabelText<HTMLTextAreaElement>("Script");
  expect(script.value).toBe("# voice\n0.0 LISTEN UDP 5000\n");
  fill(script, "# voice\n0.0 LISTEN UDP 5000-5002\n");
  expect(model.getSnapshot().text).toContain("      script: |\n        # voice\n        0.0 LISTEN UDP 5000-5002\n    resources: {}\n");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Given by"), "ConfigMap");
  fill(screen.getByLabelText("ConfigMap"), "ours");
  expect(appOf(model)).toEqual({ name: "own", mgen: { configMap: { name: "ours", key: "flows.mgn" } }, resources: {} });
  await user.selectOptions(screen.getByLabelText("Given by"), "Script");
  expect(appOf(model)).toMatchObject({ mgen: { script: "0.0 LISTEN UDP 5000\n1.0 ON 1 UDP DST a-1/5000 PERIODIC [1 200]\n" } });
});

test("a publisher follows a pattern of MGEN, which has its sizes, and each period again", async () => {
  const model = open("  - {name: own, publisher: {protocol: mqtt, to: hub, payload: nffi, period: 5s, phase: spread, retain: true}}\n");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Messages"), "a pattern");
  expect([screen.queryByLabelText("Period"), screen.queryByLabelText("Payload")]).toEqual([null, null]);
  fill(screen.getByLabelText("Script"), "0.0 ON 1 PERIODIC [2 300]");
  expect(appOf(model)).toEqual({ name: "own", publisher: { protocol: "mqtt", to: "hub", pattern: { mgen: "0.0 ON 1 PERIODIC [2 300]" }, retain: true } });
  await user.selectOptions(screen.getByLabelText("Messages"), "each period");
  expect(appOf(model)).toEqual({ name: "own", publisher: { protocol: "mqtt", to: "hub", period: "10s", retain: true } });
});

test("a script of messages goes without a broker, and by one again", async () => {
  const model = open("  - {name: own, script: {protocol: mqtt, to: far, qos: 1, version: \"5\", messages: [{at: 1s, from: a-1, to: all, text: go, bytes: 90}]}}\n  - {name: hub, vernemq: {}}\n");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Protocol"), "mqtt-udp");
  await user.selectOptions(screen.getByLabelText("Network"), "wan");
  fill(screen.getByLabelText("Text"), "halt");
  expect(appOf(model)).toEqual({ name: "own", script: { protocol: "mqtt-udp", network: "wan", version: "5", messages: [{ at: "1s", from: "a-1", to: "all", text: "halt", bytes: 90 }] } });
  await user.selectOptions(screen.getByLabelText("Protocol"), "mqtt");
  expect(appOf(model)).toMatchObject({ script: { protocol: "mqtt", to: "hub", messages: [{}] } });
  expect(screen.queryByLabelText("Network")).toBeNull();
});

test("a script of messages is moved to a ConfigMap, and begins with a node that runs it", async () => {
  const model = open("  - {name: own, script: {protocol: mqtt-udp, configMap: {name: chat, key: all.yaml}}}\n");
  expect(screen.getByLabelText<HTMLInputElement>("Key").value).toBe("all.yaml");
  await userEvent.selectOptions(screen.getByLabelText("Given by"), "Messages");
  expect(appOf(model)).toEqual({ name: "own", script: { protocol: "mqtt-udp", messages: [{ at: "10s", from: "a-1", to: "all", text: "contact" }] } });
  expect(within(screen.getByRole("group", { name: "message 1" })).getByRole<HTMLInputElement>("combobox", { name: "From" }).value).toBe("a-1");
});

test("added scripts name a node, and a broker where one speaks MQTT", () => {
  const messages = [{ at: "10s", from: "a-1", to: "all", text: "contact" }];
  expect(added("script", "{name: x, prosody: {}}")).toEqual({ name: "chat", script: { protocol: "mqtt-udp", messages } });
  expect(added("script", "{name: x, prosody: {}}, {name: hub, rabbitmq: {}}")).toEqual({ name: "chat", script: { protocol: "mqtt", to: "hub", messages } });
  expect(added("mgen", "{name: flows, mosquitto: {}}")).toEqual({ name: "flows-2", mgen: { script: "0.0 LISTEN UDP 5000\n1.0 ON 1 UDP DST a-1/5000 PERIODIC [1 200]\n" } });
});
