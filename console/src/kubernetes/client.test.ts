// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";
import { ask, askJSON, onUnknownUser, Refusal, sessionPath, unbroken } from "./client";

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

test("an answer that is no JSON is told in words for people", async () => {
  answer(200, "<html>Please log in</html>");
  const reason = await refusal(askJSON("/k8s/api/v1/pods"));
  expect(reason).toBeInstanceOf(Refusal);
  expect(String(reason)).toMatch(/not from the console's server/);
});

test("a connection that ends within an answer is told in words for people", async () => {
  expect(await refusal(unbroken(Promise.reject(new TypeError("network error"))))).toEqual(new Refusal(0, "The connection ended within the answer. Read it again."));
});

test("a question that the page itself ends is no refusal", async () => {
  const end = new DOMException("aborted", "AbortError");
  expect(await refusal(unbroken(Promise.reject(end)))).toBe(end);
});
