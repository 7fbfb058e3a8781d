import { expect, test, vi } from "vitest";
import { onToken } from "./session";

test("an open page hears of the token of a new start, and of no other fragment", async () => {
  const listener = vi.fn();
  onToken(listener);
  window.location.hash = "#main";
  window.location.hash = "#token=abc";
  await vi.waitFor(() => { expect(listener).toHaveBeenCalled(); });
  expect(listener).toHaveBeenCalledTimes(1);
});
