import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { LineList } from "./LineList";

function open(begins = false) {
  render(
    <MantineProvider env="test">
      <LineList label="Log" lines={[{ key: 0, milliseconds: undefined, text: "one" }]} t0={undefined} begins={begins} />
    </MantineProvider>,
  );
  return { list: screen.getByRole("group", { name: "Log" }), follow: screen.getByRole<HTMLInputElement>("switch", { name: "Follow" }) };
}

test("a list follows the newest line until its scrollbar is taken", () => {
  const { list, follow } = open();
  if (!list.firstElementChild) throw new Error("the list is empty");
  fireEvent.pointerDown(list.firstElementChild);
  expect(follow.checked).toBe(true);
  fireEvent.pointerDown(list);
  expect(follow.checked).toBe(false);
});

test("a list follows the newest line until a finger moves it", () => {
  const { list, follow } = open();
  if (!list.firstElementChild) throw new Error("the list is empty");
  fireEvent.touchMove(list.firstElementChild);
  expect(follow.checked).toBe(false);
});

test("a list that is read from its start stays there", () => {
  expect(open(true).follow.checked).toBe(false);
});
