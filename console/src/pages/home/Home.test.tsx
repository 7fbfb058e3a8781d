import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { answer, openPage } from "../../testing/page";
import { Home } from "./Home";

const experiment = { metadata: { name: "amber", namespace: "team", uid: "u" }, spec: { nodes: [] } };

vi.mock("../../kubernetes/hooks", () => ({ useObjectsIn: () => ({ objects: [experiment], error: undefined }), useRight: () => ({ allowed: true, error: null }) }));
vi.mock("../../components/capacity/CapacityView", () => ({ ClusterRoom: () => null, TeamRooms: () => null }));

test("words are typed into the middle of the filter, and stand in the address", async () => {
  answer({ "/session": { mode: "local", user: "ann", groups: [], namespace: "team" } });
  const router = openPage("/", Home, "/?q=aer");
  const field = await screen.findByLabelText<HTMLInputElement>("Text");
  await userEvent.setup().type(field, "mb", { initialSelectionStart: 1, initialSelectionEnd: 1 });
  expect(field.value).toBe("amber");
  expect(router.state.location.searchStr).toBe("?q=amber");
});
