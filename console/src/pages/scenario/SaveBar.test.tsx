import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { answer } from "../../testing/page";
import { objectsOf, yamlOf } from "./objects";
import type { Plan } from "./plan";
import { save } from "./save";
import { SaveBar } from "./SaveBar";

vi.mock("../../kubernetes/hooks", () => ({ useAccess: () => true }));
vi.mock("./save", () => ({ save: vi.fn() }));

const platform = (number: number) => ({ number, name: "hq", waypoints: [{ at: 0, latitude: 58, longitude: 8 }] });
const plan: Plan = { name: "patrol", namespace: "team", description: "", propagation: undefined, platforms: [platform(1), platform(2)] };

function show(answers: Record<string, unknown>, shown = plan) {
  answer(answers);
  render(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <SaveBar plan={shown} yaml={yamlOf(objectsOf(shown))} loaded={undefined} onChange={() => undefined} onSaved={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return screen.getByRole<HTMLButtonElement>("button", { name: "Save as a Scenario" });
}

test("what the server refuses is said in its words, and cannot be saved", async () => {
  const finding = { file: "text", path: "spec.tracks.named[1]", message: "has the name of an earlier entry" };
  const save = show({ "/validate": { valid: false, objects: [], findings: [finding] } });
  await screen.findByText("spec.tracks.named[1]: has the name of an earlier entry");
  expect(save.disabled).toBe(true);
});

test("the page has no rule of its own: what the server takes can be saved, with its warnings", async () => {
  const save = show({ "/validate": { valid: true, objects: [], findings: [{ file: "text", message: "a warning", warning: true }] } });
  expect(save.disabled).toBe(true);
  await waitFor(() => { expect(save.disabled).toBe(false); });
});

test("an error of a field stands at the field", async () => {
  show({ "/validate": { valid: false, objects: [], findings: [{ file: "text", path: "metadata.name", message: "must be lower-case letters" }] } });
  await waitFor(() => { expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).toBe("true"); });
});

test("an error of a named platform does not stand at the name of the scenario", async () => {
  show({ "/validate": { valid: false, objects: [], findings: [{ file: "text", path: "spec.tracks.named[0].name", message: "must not be empty" }] } });
  await screen.findByText("spec.tracks.named[0].name: must not be empty");
  expect(screen.getByLabelText("Name").getAttribute("aria-invalid")).not.toBe("true");
});

test("what is edited while a plan is saved does not count as saved", async () => {
  let write: () => void = () => undefined;
  vi.mocked(save).mockReturnValue(new Promise((resolve) => { write = resolve; }));
  answer({ "/validate": { valid: true, objects: [], findings: [] } });
  const client = new QueryClient();
  const onSaved = vi.fn();
  const bar = (shown: Plan) => (
    <MantineProvider>
      <QueryClientProvider client={client}>
        <SaveBar plan={shown} yaml={yamlOf(objectsOf(plan))} loaded={undefined} onChange={() => undefined} onSaved={onSaved} />
      </QueryClientProvider>
    </MantineProvider>
  );
  const { rerender } = render(bar(plan));
  const button = screen.getByRole<HTMLButtonElement>("button", { name: "Save as a Scenario" });
  await waitFor(() => { expect(button.disabled).toBe(false); });
  fireEvent.click(button);
  await waitFor(() => { expect(save).toHaveBeenCalled(); });
  rerender(bar({ ...plan, description: "edited meanwhile" }));
  write();
  await screen.findByText("Saved.");
  expect(onSaved.mock.calls.map(([saved]) => saved as Plan)).toEqual([plan]);
});

test("an empty map asks for a platform, in the words of the map", async () => {
  const save = show({ "/validate": { valid: false, objects: [], findings: [{ file: "text", path: "spec", message: "its sources are empty" }] } }, { ...plan, platforms: [] });
  await screen.findByText("Place a platform on the map first.");
  await waitFor(() => { expect(screen.queryByText(/sources are empty/)).toBeNull(); });
  expect(save.disabled).toBe(true);
});
