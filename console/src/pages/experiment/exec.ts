import { pathOf } from "../../kubernetes/client";
import { pods } from "../../kubernetes/kinds";

// Channels of v5.channel.k8s.io: the first byte of each message.
const stdin = 0;
const stdout = 1;
const stderr = 2;
const status = 3;
const resize = 4;

/** What the other side of a terminal sent. */
export type Received = { kind: "output"; bytes: Uint8Array } | { kind: "end"; message: string } | { kind: "nothing" };

/** received reads a message of the other side. */
export function received(message: ArrayBuffer): Received {
  const bytes = new Uint8Array(message);
  const channel = bytes[0];
  const rest = bytes.subarray(1);
  if (channel === stdout || channel === stderr) return { kind: "output", bytes: rest };
  return channel === status ? { kind: "end", message: endOf(new TextDecoder().decode(rest)) } : { kind: "nothing" };
}

function endOf(text: string): string {
  try {
    const { status: outcome, message, details } = JSON.parse(text) as { status?: string; message?: string; details?: { causes?: { reason?: string; message?: string }[] } };
    if (outcome === "Success") return "The shell has ended.";
    const code = details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
    if (code !== undefined) return `The shell has ended with exit code ${code}.`;
    if (/no such file|executable file not found/.test(message ?? "")) return "The image of this app has no shell: use the toolbox, or another app's container.";
    return `The shell has ended: ${message ?? "no reason was given"}`;
  } catch {
    return "The shell has ended.";
  }
}

/** typed is the message for what the user types. */
export function typed(text: string): Uint8Array<ArrayBuffer> {
  return message(stdin, text);
}

/** resized is the message for a terminal's new size. */
export function resized(columns: number, rows: number): Uint8Array<ArrayBuffer> {
  return message(resize, JSON.stringify({ Width: columns, Height: rows }));
}

function message(channel: number, text: string): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(text);
  const all = new Uint8Array(bytes.length + 1);
  all[0] = channel;
  all.set(bytes, 1);
  return all;
}

// bash if the image has it, else sh, as in `vignette shell`.
const anyShell = ["/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec /bin/sh"];

/** protocol of the WebSocket. */
export const protocol = "v5.channel.k8s.io";

/** shellPath is the path of a terminal in a container. */
export function shellPath(namespace: string, pod: string, container: string): string {
  const parameters = new URLSearchParams({ container, stdin: "true", stdout: "true", tty: "true" });
  for (const argument of anyShell) parameters.append("command", argument);
  return `${pathOf(pods, namespace, pod)}/exec?${parameters.toString()}`;
}
