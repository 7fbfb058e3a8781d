// @vitest-environment node
import { expect, test } from "vitest";
import { received, resized, shellPath, typed } from "./exec";

const incoming = (channel: number, text: string) => received(Uint8Array.from([channel, ...new TextEncoder().encode(text)]).buffer);

test("what the shell prints comes on its own channels", () => {
  expect(incoming(1, "hé")).toEqual({ kind: "output", bytes: new TextEncoder().encode("hé") });
  expect(incoming(2, "x").kind).toBe("output");
  expect(incoming(9, "x").kind).toBe("nothing");
  expect(received(new ArrayBuffer(0)).kind).toBe("nothing");
});

test("the end of a shell is said in words", () => {
  const end = (value: object) => incoming(3, JSON.stringify(value));
  expect(end({ status: "Success" })).toEqual({ kind: "end", message: "The shell has ended." });
  expect(end({ status: "Failure", details: { causes: [{ reason: "ExitCode", message: "130" }] } })).toEqual({ kind: "end", message: "The shell has ended with exit code 130." });
  expect(end({ status: "Failure", message: 'exec: "/bin/sh": stat /bin/sh: no such file or directory' })).toMatchObject({ message: "The image of this app has no shell: use the toolbox, or another app's container." });
  expect(incoming(3, "{").kind).toBe("end");
});

test("what is typed and the size go on their channels", () => {
  expect([...typed("a")]).toEqual([0, 97]);
  expect(new TextDecoder().decode(resized(80, 24))).toBe('\u0004{"Width":80,"Height":24}');
});

test("the path names the container and a shell, and names cannot change it", () => {
  const path = shellPath("team", "e/../hq", "a&b");
  expect(path.startsWith("/k8s/api/v1/namespaces/team/pods/e%2F..%2Fhq/exec?container=a%26b&stdin=true&stdout=true&tty=true&command=%2Fbin%2Fsh&command=-c&")).toBe(true);
});
