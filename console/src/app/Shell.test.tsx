import { MantineProvider } from "@mantine/core";
import { act, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { learnTime } from "../kubernetes/time";
import { WrongClock } from "./Shell";

test("the page says that the browser's clock is off, and by how much", () => {
  render(
    <MantineProvider env="test">
      <WrongClock />
    </MantineProvider>,
  );
  const clusterIs = (seconds: number) => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    act(() => {
      learnTime(new Date(now + 1000 * seconds).toUTCString(), now + 500, now + 500);
    });
  };
  clusterIs(1);
  expect(screen.queryByRole("status")).toBeNull();
  clusterIs(180);
  expect(screen.getByRole("status").textContent).toBe("This computer's clock is 3m00s behind the cluster's. The page goes by the cluster's.");
  clusterIs(-60);
  expect(screen.getByRole("status").textContent).toContain("1m00s ahead of");
});
