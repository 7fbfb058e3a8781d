import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { loadSchemas } from "../text/schema";
import { AppFields } from "./AppFields";

const nodes = "  nodes: [{name: hq, apps: [chat]}, {name: a, count: 2, apps: [chat]}]\n";

const schemas = await loadSchemas();

function open(messaging: string): TextModel {
  const model = new TextModel(`kind: Experiment\nspec:\n  networks: [{name: wan}]\n  apps:\n  - {name: chat, messaging: ${messaging}}   # the unit's\n  - {name: near, proxy: {peer: far}}\n  - {name: far, proxy: {}}\n${nodes}`);
  openForm(model, <AppFields place={0} />, schemas);
  return model;
}

function written(model: TextModel): string | undefined {
  return /messaging: (.*)\} {3}# the unit's/.exec(model.getSnapshot().text)?.[1];
}

test("a service that only answers gets requests each period, from some nodes only", async () => {
  const model = open("{transport: http, reply: geojson}");
  const user = userEvent.setup();
  expect(screen.getByText("messaging service")).toBeTruthy();
  await user.selectOptions(screen.getByLabelText("Requests"), "one each period");
  await user.click(screen.getByRole("combobox", { name: "From" }));
  await user.click(await screen.findByRole("option", { name: "a-2" }));
  expect(written(model)).toBe("{transport: http, reply: geojson, push: {to: all, period: 10s, from: [a-2]}}");
  await user.selectOptions(screen.getByLabelText("Requests"), "none");
  expect(written(model)).toBe("{transport: http, reply: geojson}");
});

test("a script takes the place of periodic requests, and gets another message", async () => {
  const model = open("{transport: coap, push: {to: a, period: 5s}, encoding: cbor}");
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText("Requests"), "a script");
  await user.click(screen.getByRole("button", { name: "Add a message" }));
  fill(within(screen.getByRole("group", { name: "message 2" })).getByLabelText("Text"), "move, now");
  await user.click(screen.getByRole("button", { name: "Remove message 1, at 10s" }));
  expect(written(model)).toBe('{transport: coap, messages: [{at: 10s, from: hq, to: all, text: "move, now"}], encoding: cbor}');
});

test("of a long script the first messages are shown, and how many more there are", () => {
  open(`{transport: http, messages: [${Array.from({ length: 13 }, (_, i) => `{at: ${i}s, from: hq, to: all}`).join(", ")}]}`);
  expect(screen.getAllByLabelText("Text").length).toBe(10);
  expect(screen.getByText("3 more in the YAML.")).toBeTruthy();
});

test("another transport takes the settings along that it does not have", async () => {
  const model = open("{transport: coap, coap: {confirmable: false}, receipt: false, multicast: true, encoding: cbor}");
  await userEvent.selectOptions(screen.getByLabelText("Transport"), "http");
  expect(written(model)).toBe("{transport: http, encoding: cbor}");
});

test("a near proxy carries the requests of HTTP, and is not offered for CoAP", async () => {
  const model = open("{transport: http}");
  await userEvent.selectOptions(screen.getByLabelText("Via proxy"), "near");
  expect(within(screen.getByLabelText("Via proxy")).queryByRole("option", { name: "far" })).toBeNull();
  expect(written(model)).toBe("{transport: http, via: near}");
  await userEvent.selectOptions(screen.getByLabelText("Transport"), "coap");
  expect(screen.queryByLabelText("Via proxy")).toBeNull();
});

test("the last setting of CoAP takes its object along", async () => {
  const model = open("{transport: coap}");
  await userEvent.selectOptions(screen.getByLabelText("Confirmable"), "no");
  expect(written(model)).toBe("{transport: coap, coap: {confirmable: false}}");
  await userEvent.selectOptions(screen.getByLabelText("Confirmable"), "yes (default)");
  expect(written(model)).toBe("{transport: coap}");
});

test("requests go to a server of the user's own, at a path, and its nodes are offered as addressees", async () => {
  const model = new TextModel("kind: Experiment\nspec:\n  apps: [{name: chat, messaging: {transport: http, reply: geojson, push: {to: all, period: 5s}}}, {name: tracks, image: i, command: [/s]}, {name: near, proxy: {peer: far}}]\n  nodes: [{name: hq, apps: [tracks]}, {name: a, apps: [chat]}]\n");
  openForm(model, <AppFields place={0} />, schemas);
  const user = userEvent.setup();
  const written = () => /messaging: (.*)\}, \{name: tracks/.exec(model.getSnapshot().text)?.[1];
  expect(within(screen.getByLabelText("Server")).getAllByRole("option").map((option) => option.textContent)).toEqual(["none: they call each other", "tracks"]);
  expect(screen.queryByLabelText("Path")).toBeNull();
  await user.selectOptions(screen.getByLabelText("Server"), "tracks");
  fill(screen.getByLabelText("Path"), "/api?all");
  expect(written()).toBe("{transport: http, push: {to: all, period: 5s}, server: tracks, path: /api?all}");
  expect(screen.queryByLabelText("Reply")).toBeNull();
  await user.click(screen.getByRole("combobox", { name: "To" }));
  expect(within(screen.getByRole("listbox", { name: "To" })).getAllByRole("option").map((option) => option.textContent)).toEqual(["all", "hq"]);
  await user.selectOptions(screen.getByLabelText("Server"), "none: they call each other");
  expect(written()).toBe("{transport: http, push: {to: all, period: 5s}}");
});
