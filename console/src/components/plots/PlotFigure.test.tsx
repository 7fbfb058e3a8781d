import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import "../../testing/patience";
import { PlotFigure } from "./PlotFigure";

vi.mock("@observablehq/plot", () => {
  throw new Error("the file is gone");
});

test("a plot whose library cannot be loaded says so, and its table can still be read", async () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <PlotFigure title="Delays" file="delays" draw={() => document.createElement("div")} columns={[]} rows={[]} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(await screen.findByText("The plot could not be drawn")).toBeTruthy();
  expect(screen.queryByLabelText("The plot is being drawn")).toBeNull();
  expect(screen.getByRole("button", { name: "As a table" })).toBeTruthy();
});
