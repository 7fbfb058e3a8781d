// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";
import { ask, askJSON, onUnknownUser, Refusal, sessionPath } from "./client";

afterEach(() => {
  vi.unstubAllGlobals();
});

function answer(status: number, body: string) {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body, { status })));
}

function refusal(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}

test("a refusal has the path of the login", async () => {
  answer(401, `{"error": "nobody is logged in", "login": "/console/v1/login"}`);
  expect(await refusal(askJSON(sessionPath))).toMatchObject({ status: 401, message: "nobody is logged in", login: "/console/v1/login" });
});

test("whoever listens learns that nobody is logged in, but not from the session itself", async () => {
  const listener = vi.fn();
  const end = onUnknownUser(listener);
  answer(401, "{}");
  await refusal(ask(sessionPath));
  expect(listener).toHaveBeenCalledTimes(0);
  await refusal(ask("/k8s/api/v1/pods"));
  expect(listener).toHaveBeenCalledTimes(1);
  end();
  await refusal(ask("/k8s/api/v1/pods"));
  expect(listener).toHaveBeenCalledTimes(1);
});

test("a right that is missing is no login that ended", async () => {
  const listener = vi.fn();
  const end = onUnknownUser(listener);
  answer(403, `{"message": "pods is forbidden"}`);
  expect(await refusal(ask("/k8s/api/v1/pods"))).toEqual(new Refusal(403, "pods is forbidden"));
  expect(listener).not.toHaveBeenCalled();
  end();
});
