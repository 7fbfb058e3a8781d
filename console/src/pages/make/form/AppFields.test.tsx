import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { AppFields } from "./AppFields";

test("only an app that no node runs is said to run nowhere", () => {
  const text = "kind: Experiment\nspec:\n  nodes: [{name: hq, apps: [hub]}]\n  apps: [{name: hub, mosquitto: {}}, {name: extra, subscriber: {protocol: mqtt, to: hub}}]\n";
  openForm(new TextModel(text), [0, 1].map((place) => <AppFields key={place} place={place} />));
  const [said, ...more] = screen.getAllByText(/^No node runs this app/);
  expect(more).toEqual([]);
  expect(said?.parentElement?.textContent).toContain("extra");
});

test("instances are asked for only where an app may have several, or where they have to go", () => {
  const text = "kind: Experiment\nspec:\n  apps: [{name: hub, mosquitto: {}}, {name: chat, instances: 2, messaging: {}}, {name: near, proxy: {}}, {name: own, command: [/app]}, {name: units, subscriber: {}}]\n";
  openForm(new TextModel(text), [0, 1, 2, 3, 4].map((place) => <div key={place} data-testid={`app ${place}`}><AppFields place={place} /></div>));
  expect([0, 1, 2, 3, 4].filter((place) => within(screen.getByTestId(`app ${place}`)).queryByLabelText("Instances"))).toEqual([1, 3, 4]);
});

test("nodes and clients follow an app's new name once it is typed, not each key of it", async () => {
  const text = "kind: Experiment\nspec:\n  nodes: [{name: hq, apps: [hub]}]\n  apps: [{name: hub, mosquitto: {}}, {name: h, subscriber: {to: hub}}]\n";
  const model = new TextModel(text);
  openForm(model, <AppFields place={0} />);
  const name = screen.getByLabelText("Name");
  await userEvent.click(name);
  for (const typed of ["hu", "h", "hq-hub"]) fill(name, typed);
  expect(model.getSnapshot().text).toBe(text.replace("name: hub", "name: hq-hub"));
  await userEvent.tab();
  expect(model.getSnapshot().text).toBe(text.replaceAll("hub", "hq-hub"));
});
