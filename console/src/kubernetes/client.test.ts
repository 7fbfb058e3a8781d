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

test("what the API server finds invalid is told by field, without its patterns and the name of an object that was not made", async () => {
  const limit = "Invalid value: \"64MB\": spec.limit in body should match '^(\\+|-)?([0-9]+)(([KMGTPE]i)|[numkMGTPE])?$'";
  const duration = 'Invalid value: "string": must be a duration with its unit';
  const level = 'Invalid value: "string": spec.level in body must be of type integer: "string"';
  const rest = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
  const causes = Object.entries({ "spec.limit": limit, "spec.duration": duration, "spec.level": level, "<nil>": rest }).map(([field, message]) => ({ field, message }));
  answer(422, JSON.stringify({ message: `Capture.vignette.dev "amber-lzk4t" is invalid: [spec.limit: ${limit}, spec.duration: ${duration}]`, reason: "Invalid", details: { causes } }));
  const words = { "spec.limit": "must be an amount such as 2, 500m or 1Gi", "spec.duration": "must be a duration with its unit", "spec.level": "must be of type integer, not string" };
  expect(await refusal(askJSON("/k8s/apis/vignette.dev/v1alpha1/captures"))).toMatchObject({
    message: Object.entries(words).map(([field, message]) => `${field}: ${message}`).join("; "),
    causes: Object.entries(words).map(([field, message]) => ({ field, message })),
  });
});

test("a refusal by a policy names no field", async () => {
  const message = "ValidatingAdmissionPolicy 'vignette-experiment-fields' denied request: spec.apps[0].files[0]: want a name";
  answer(422, JSON.stringify({ message: `experiments "e" is forbidden: ${message}`, reason: "Invalid", details: { causes: [{ message }] } }));
  expect(await refusal(askJSON("/k8s/apis/vignette.dev/v1alpha1/experiments"))).toMatchObject({ message });
});

test("an answer that is no JSON is told in words for people", async () => {
  answer(200, "<html>Please log in</html>");
  const reason = await refusal(askJSON("/k8s/api/v1/pods"));
  expect(reason).toBeInstanceOf(Refusal);
  expect(String(reason)).toMatch(/not from the console's server/);
});

test("the page that a proxy shows for a console that is away is told by its status, not by its source", async () => {
  answer(502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center>nginx</center></body></html>");
  expect(await refusal(ask("/k8s/api/v1/pods"))).toEqual(new Refusal(502, "The server answered 502."));
  answer(503, "no healthy upstream");
  expect(await refusal(ask("/k8s/api/v1/pods"))).toEqual(new Refusal(503, "no healthy upstream"));
});

test("a connection that ends within an answer is told in words for people", async () => {
  expect(await refusal(unbroken(Promise.reject(new TypeError("network error"))))).toEqual(new Refusal(0, "The connection ended within the answer. Read it again."));
});

test("a question that the page itself ends is no refusal", async () => {
  const end = new DOMException("aborted", "AbortError");
  expect(await refusal(unbroken(Promise.reject(end)))).toBe(end);
});
