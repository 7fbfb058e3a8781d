import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { titleOf, useNewPage } from "./page";

test.each([
  ["/", "Experiments · vignette"],
  ["/admin", "Administration · vignette"],
  ["/ns/nor/experiments/cut-1", "cut-1 in nor · vignette"],
  ["/ns/nor/campaigns/e5", "Campaign e5 in nor · vignette"],
  ["/ns/nor/runs/0a1b", "Run 0a1b in nor · vignette"],
  ["/ns/nor/runs/%E0%A4%A", "Run %E0%A4%A in nor · vignette"],
  ["/elsewhere", "vignette"],
])("the page at %s is called %s", (path, title) => {
  expect(titleOf(path)).toBe(title);
});

function Page({ path }: { path: string }) {
  useNewPage(path);
  return <main id="main" tabIndex={-1} />;
}

test("another page has the focus, and the first one leaves it where it is", () => {
  const { rerender } = render(<Page path="/" />);
  expect(document.activeElement).toBe(document.body);
  rerender(<Page path="/admin" />);
  expect(document.activeElement?.id).toBe("main");
  expect(document.title).toBe("Administration · vignette");
});
