import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { Refusal } from "../kubernetes/client";
import { Trouble } from "./Trouble";

function open(error: unknown) {
  render(
    <MantineProvider env="test">
      <Trouble error={error} />
    </MantineProvider>,
  );
  return screen.getByRole("alert").textContent;
}

test("what a server refused is shown in its words", () => {
  expect(open(new Refusal(403, "you may not list pods"))).toMatch(/you may not list pods$/);
});

test("an error of JavaScript stays out of the page, which can be loaded again", () => {
  expect(open(new TypeError("x is not a function"))).not.toMatch(/function/);
  expect(screen.getByRole("button", { name: "Reload" })).toBeTruthy();
});
