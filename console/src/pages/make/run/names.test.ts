// @vitest-environment node
import { expect, test } from "vitest";
import { commandsFor, freeName } from "./names";

test("a name that is free stays, and another gets the next number", () => {
  expect(freeName("quickstart", new Set())).toBe("quickstart");
  expect(freeName("quickstart", new Set(["quickstart", "quickstart-2"]))).toBe("quickstart-3");
  expect(freeName("e5-cut-1", new Set(["e5-cut-1"]))).toBe("e5-cut-2");
  expect(freeName("a".repeat(40), new Set(["a".repeat(40)]))).toBe(`${"a".repeat(38)}-2`);
});

test("the commands do the same as the page", () => {
  expect(commandsFor("Experiment", "try", "team").map((c) => c.command)).toEqual(["kubectl apply --server-side -n team -f try.yaml", "vignette run -n team try.yaml --watch"]);
});

test("a name that a shell would read as more than a word has quotes", () => {
  const [kubectl] = commandsFor("Experiment", "it's; rm x", "$(team)");
  expect(kubectl?.command).toBe("kubectl apply --server-side -n '$(team)' -f 'it'\\''s; rm x.yaml'");
});
