import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Refusal } from "../kubernetes/client";
import { Login } from "./Login";

afterEach(() => {
  window.history.replaceState(null, "", "/");
});

function open(error: Error) {
  render(
    <MantineProvider env="test">
      <Login error={error} />
    </MantineProvider>,
  );
}

test("a team's console links to its login, which comes back to the page", () => {
  window.history.replaceState(null, "", "/ns/nor/runs/1?part=files&find=a");
  open(new Refusal(401, "nobody is logged in", "", [], "/console/v1/login"));
  expect(screen.getByRole("link", { name: "Log in" }).getAttribute("href")).toBe("/console/v1/login?to=%2Fns%2Fnor%2Fruns%2F1%3Fpart%3Dfiles%26find%3Da");
});

test("one's own console names the command that printed its address", () => {
  open(new Refusal(401, "the token is unknown"));
  expect(screen.getByText("vignette ui")).toBeTruthy();
  expect(screen.queryByRole("link")).toBeNull();
});

test("a console that does not answer is not taken for a login that ended", () => {
  open(new Refusal(0, "The console does not answer."));
  expect(screen.getByText("The console does not answer.")).toBeTruthy();
});
