import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** RunningConsole is a `vignette ui` that listens. */
export interface RunningConsole {
  /** origin of the console, without a path. */
  origin: string;
  /** token of this start. */
  token: string;
  stop: () => void;
}

const program = process.env.VIGNETTE ?? fileURLToPath(new URL("../../bin/vignette", import.meta.url));

/** startConsole starts `vignette ui` with more arguments, and waits for its address. */
export async function startConsole(...more: string[]): Promise<RunningConsole> {
  const child = spawn(program, ["ui", ...more], { stdio: ["ignore", "pipe", "inherit"] });
  const failed = new Promise<never>((_, reject) => {
    child.once("error", () => {
      reject(new Error(`${program} cannot be started: run make build`));
    });
    child.once("exit", (code) => {
      reject(new Error(`${program} ui has ended with code ${code ?? "none"}`));
    });
  });
  failed.catch(() => undefined); // it also ends when it is stopped
  const address = new Promise<URL>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = /^Open (http:\S+)$/.exec(line)?.[1];
      if (found) resolve(new URL(found));
    });
  });
  const { origin, hash } = await Promise.race([address, failed]);
  return { origin, token: new URLSearchParams(hash.slice(1)).get("token") ?? "", stop: () => child.kill("SIGINT") };
}
