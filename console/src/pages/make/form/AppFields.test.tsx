import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { AppFields } from "./AppFields";

test("only an app that no node runs is said to run nowhere", () => {
  const text = "kind: Experiment\nspec:\n  nodes: [{name: hq, apps: [hub]}]\n  apps: [{name: hub, mosquitto: {}}, {name: extra, subscriber: {protocol: mqtt, to: hub}}]\n";
  openForm(new TextModel(text), [0, 1].map((place) => <AppFields key={place} place={place} />));
  const [said, ...more] = screen.getAllByText(/^No node runs this app/);
  expect(more).toEqual([]);
  expect(said?.parentElement?.textContent).toContain("extra");
});
