import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { Refusal } from "../../kubernetes/client";
import { answer, openPage } from "../../testing/page";
import { Home } from "./Home";

const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { nodes: [] } };

const held = vi.hoisted((): { objects: unknown; error: unknown } => ({ objects: undefined, error: undefined }));

vi.mock("../../kubernetes/hooks", () => ({ useObjectsIn: () => held, useRight: () => ({ allowed: true, error: null }) }));
vi.mock("../../components/capacity/CapacityView", () => ({ ClusterRoom: () => null, TeamRooms: () => null }));

test("words are typed into the middle of the filter, and stand in the address", async () => {
  held.objects = [experiment];
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" } });
  const router = openPage("/", Home, "/?q=aer");
  const field = await screen.findByLabelText<HTMLInputElement>("Text");
  await userEvent.setup().type(field, "mb", { initialSelectionStart: 1, initialSelectionEnd: 1 });
  expect(field.value).toBe("amber");
  expect(router.state.location.searchStr).toBe("?q=amber");
});

test("experiments that could not be listed are not said to be none", async () => {
  Object.assign(held, { objects: undefined, error: new Refusal(503, "the API server is away") });
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" } });
  openPage("/", Home, "/");
  await screen.findByText("Some experiments could not be read");
  expect(screen.queryByText("There are no experiments here yet.")).toBeNull();
});
