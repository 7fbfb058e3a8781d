import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { VirtualTable, type Column } from "./VirtualTable";

const columns: Column<string>[] = [
  { id: "message", head: "Message", value: (text) => text },
  { id: "length", head: "Length", numeric: true, value: (text) => text.length },
];

test("a text that a narrow column cuts can be read in full", () => {
  const message = "the experiment was refused: network wan has the subnet 198.18.0.0/24, which overlaps that of network lan";
  render(
    <MantineProvider>
      <VirtualTable label="Runs" columns={columns} rows={[message]} keyOf={(text) => text} />
    </MantineProvider>,
  );
  expect(screen.getAllByRole("cell").map((cell) => cell.getAttribute("title"))).toEqual([message, null]);
});
