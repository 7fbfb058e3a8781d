import { MantineProvider } from "@mantine/core";
import { EditorView } from "@codemirror/view";
import { render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { Editor } from "./Editor";
import { editorOf } from "./extensions";

test("the editor says, also to a screen reader, how the keyboard leaves it", () => {
  const { model } = editorOf("kind: Experiment\n");
  vi.spyOn(model, "attach").mockReturnValue(() => undefined); // jsdom has no layout, which it measures
  render(
    <MantineProvider env="test">
      <Editor model={model} />
    </MantineProvider>,
  );
  const described = model.current.facet(EditorView.contentAttributes).flatMap((attributes) => (typeof attributes === "function" ? [] : [attributes["aria-describedby"]]));
  expect(described).toContain(screen.getByText(/press Escape, then Tab/).id);
});
