import { MantineProvider } from "@mantine/core";
import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { Curve } from "./Curve";

test("the marks of a value that stays the same differ", () => {
  render(
    <MantineProvider env="test">
      <Curve title="Mean hops" unit="hops" at={0} points={[{ at: 0, value: 1 }, { at: 114, value: 1 }]} />
    </MantineProvider>,
  );
  expect([...document.querySelectorAll("text")].map((mark) => mark.textContent)).toEqual(["2", "1", "1m54s"]);
});
