import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { fill, openForm } from "../../../testing/make";
import { TextModel } from "../text/model";
import { specOf } from "../text/read";
import { loadSchemas } from "../text/schema";
import { AppFields } from "./AppFields";

const schemas = await loadSchemas();

function open(more: string): TextModel {
  const model = new TextModel(`kind: Experiment\nspec:\n  apps:\n  - name: report   # ours\n    image: python:3-slim\n${more}`);
  openForm(model, <AppFields place={0} />, schemas);
  return model;
}

function appOf(model: TextModel): unknown {
  const { main } = model.getSnapshot().content;
  return main && (specOf(main).apps as unknown[])[0];
}

test("a command has an argument a line, with spaces as they are, and numbers stay text", () => {
  const model = open("    command: [python3, /opt/report.py]\n");
  const command = screen.getByLabelText<HTMLTextAreaElement>("Command");
  expect(command.value).toBe("python3\n/opt/report.py");
  fill(command, `${command.value}\nto all\n0.5\n`);
  expect(command.value).toBe("python3\n/opt/report.py\nto all\n0.5\n");
  expect(model.getSnapshot().text).toContain('- name: report   # ours\n    image: python:3-slim\n    command: [python3, /opt/report.py, to all, "0.5"]\n');
});

test("an argument of several lines is not broken up: the YAML has it", async () => {
  const model = open('    command: [sh, -c, "sleep 1\\ndate"]\n');
  const text = model.getSnapshot().text;
  await userEvent.type(screen.getByLabelText("Command"), "x");
  expect(screen.getByText("An argument has several lines: change it in the YAML.")).toBeTruthy();
  expect(model.getSnapshot().text).toBe(text);
});

test("a variable gets its value from a Secret, and back", async () => {
  const model = open("    command: [/app]\n");
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Add a variable" }));
  fill(screen.getByLabelText("Variable"), "PERIOD");
  fill(screen.getByLabelText("Value"), "1");
  expect(appOf(model)).toMatchObject({ env: [{ name: "PERIOD", value: "1" }] });
  await user.selectOptions(screen.getByLabelText("Given by"), "Secret");
  fill(screen.getByLabelText("Name of the Secret"), "ours");
  fill(screen.getByLabelText("Key"), "period");
  expect(appOf(model)).toMatchObject({ env: [{ name: "PERIOD", secret: { name: "ours", key: "period" } }] });
  await user.click(screen.getByRole("button", { name: "Remove variable PERIOD" }));
  expect(appOf(model)).toEqual({ name: "report", image: "python:3-slim", command: ["/app"] });
});

test("a file is of a ConfigMap or written here, in lines", async () => {
  const model = open("    command: [/app]\n    files:\n    - {path: /opt/a, configMap: {name: own, key: a}}\n");
  const user = userEvent.setup();
  const file = within(screen.getByRole("group", { name: "file /opt/a" }));
  expect(file.getByLabelText<HTMLInputElement>("Key").value).toBe("a");
  await user.selectOptions(file.getByLabelText("Given by"), "Content");
  fill(file.getByLabelText("Content"), "one\ntwo");
  expect(appOf(model)).toMatchObject({ files: [{ path: "/opt/a", content: "one\ntwo" }] });
});

test("topics that an app subscribes to go with the last one", async () => {
  const model = open('    command: [/app]\n    subscribes: ["own/#"]\n');
  await userEvent.type(screen.getByRole("combobox", { name: "Subscribes" }), "{Backspace}");
  expect(appOf(model)).toEqual({ name: "report", image: "python:3-slim", command: ["/app"] });
});
