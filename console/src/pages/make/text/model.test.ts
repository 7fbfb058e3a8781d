import { expect, test, vi } from "vitest";
import { TextModel } from "./model";

const text = "kind: Experiment\nspec: {seed: 7}   # drawn\n";

function setSeed(model: TextModel, seed: number): void {
  model.edit([{ document: 0, path: ["spec", "seed"], value: seed }]);
}

test("undo takes back what the form and what the editor wrote, in order", () => {
  const model = new TextModel(text);
  setSeed(model, 8);
  model.dispatch(model.current.update({ changes: { from: 0, insert: "# mine\n" }, userEvent: "input.type" }));
  expect(model.getSnapshot().text).toBe(`# mine\n${text.replace("7", "8")}`);
  model.undo();
  expect(model.getSnapshot().text).toBe(text.replace("7", "8"));
  model.undo();
  expect(model.getSnapshot()).toMatchObject({ text, undoable: false, redoable: true });
  model.redo();
  expect(model.getSnapshot().text).toBe(text.replace("7", "8"));
});

test("what is typed into one field of the form is one step of undo, and another field is another", () => {
  vi.useFakeTimers();
  const model = new TextModel("kind: Experiment\nspec: {seed: 7, drain: 1}\n");
  const set = (field: string, value: number) => { model.edit([{ document: 0, path: ["spec", field], value }]); };
  for (const value of [71, 712]) set("seed", value);
  for (const value of [12, 123]) set("drain", value);
  vi.useRealTimers();
  expect(model.getSnapshot().text).toContain("{seed: 712, drain: 123}");
  model.undo();
  expect(model.getSnapshot().text).toContain("{seed: 712, drain: 1}");
  model.undo();
  expect(model.getSnapshot()).toMatchObject({ undoable: false, text: "kind: Experiment\nspec: {seed: 7, drain: 1}\n" });
});

test("two nodes that are removed from the same place are two steps of undo", () => {
  const nodes = "kind: Experiment\nspec:\n  nodes: [{name: a}, {name: b}, {name: c}]\n";
  const model = new TextModel(nodes);
  for (let i = 0; i < 2; i++) model.edit([{ document: 0, path: ["spec", "nodes", 0] }]);
  model.undo();
  expect(model.getSnapshot().text).toBe(nodes.replace("{name: a}, ", ""));
});

test("the form shows the last text that could be read while the editor's has a mistake", () => {
  const model = new TextModel(text);
  model.replace("kind: Experiment\nspec: {seed: [\n");
  const { content, readable } = model.getSnapshot();
  expect(content.problem).toEqual({ line: 3, message: "This is no YAML." });
  expect(readable.main?.object.spec).toEqual({ seed: 7 });
});

test("the form shows the text before while an alias has no anchor, and goes on when it has one", () => {
  const model = new TextModel(text);
  model.replace("kind: Experiment\nspec: {seed: *drawn}\n");
  expect(model.getSnapshot()).toMatchObject({ text: "kind: Experiment\nspec: {seed: *drawn}\n", content: { problem: { line: 2 } }, readable: { main: { object: { spec: { seed: 7 } } } } });
  setSeed(model, 9);
  expect(model.getSnapshot().text).toContain("*drawn");
  model.replace("kind: Experiment\nspec: {drain: &drawn 8, seed: *drawn}\n");
  expect(model.getSnapshot().readable.main?.object.spec).toEqual({ drain: 8, seed: 8 });
});

test("whoever listens hears of changes of the text, and of nothing else", () => {
  const model = new TextModel(text);
  const heard = vi.fn();
  model.subscribe(heard);
  setSeed(model, 7);
  model.dispatch(model.current.update({ selection: { anchor: 3 } }));
  expect(heard).not.toHaveBeenCalled();
  setSeed(model, 9);
  expect(heard).toHaveBeenCalledOnce();
});
