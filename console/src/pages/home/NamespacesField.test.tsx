import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import "../../testing/patience";
import { NamespacesField } from "./NamespacesField";

test("a name that no namespace can have is refused in words, until another one is named", async () => {
  const remember = vi.fn();
  render(
    <MantineProvider env="test">
      <NamespacesField scope={{ namespaces: ["team-nor"], known: true, error: null, remember, forget: () => undefined }} />
    </MantineProvider>,
  );
  const user = userEvent.setup();
  const field = screen.getByRole("combobox", { name: "Namespaces to show" });
  await user.type(field, "Team Swe{Enter}");
  expect(screen.getByText("No namespace can have the name Team Swe: want lower-case letters, digits and hyphens, at most 63.")).toBeTruthy();
  expect(remember).not.toHaveBeenCalled();
  await user.type(field, "team-swe{Enter}");
  expect(screen.queryByText(/^No namespace can/)).toBeNull();
  expect(remember).toHaveBeenCalledExactlyOnceWith("team-swe");
});
