import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { read } from "../text/read";
import { Editing } from "./actions";
import { FormContext } from "./context";
import { TextField } from "./fields";

test.each([["12", 12], ["9007199254740993", "9007199254740993"]])("the seed %s is never rounded: it is written as typed", (word, value) => {
  const main = read("kind: Experiment\nspec: {seed: 7}\n").main;
  if (!main) throw new Error("the text has no experiment");
  const edit = vi.fn();
  render(
    <MantineProvider env="test">
      <FormContext value={{ editing: new Editing(main), findings: [], schemas: undefined, edit }}>
        <TextField label="Seed" path={["seed"]} number />
      </FormContext>
    </MantineProvider>,
  );
  fireEvent.change(screen.getByLabelText("Seed"), { target: { value: word } });
  expect(edit).toHaveBeenCalledWith([{ document: 0, path: ["spec", "seed"], value }]);
});
