import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** TeamConsole is a console for two teams, whose users log in at a service. */
export interface TeamConsole {
  origin: string;
  issuer: string;
  password: string;
  /** Set where there is no such console, and why. */
  skip?: string;
  /** stop ends it and what it made, and waits for that. */
  stop: () => Promise<void>;
}

const root = fileURLToPath(new URL("../../", import.meta.url));

/** startTeamConsole starts it on the cluster of KUBECONFIG, or on a control plane of its own. CONSOLE_TEAM is what one that runs has printed. */
export async function startTeamConsole(onCluster: boolean): Promise<TeamConsole> {
  const running = process.env.CONSOLE_TEAM;
  if (running) return { ...(JSON.parse(running) as Omit<TeamConsole, "stop">), stop: () => Promise.resolve() };
  const child = spawn("go", ["run", "./test/teamconsole", ...(onCluster ? ["--cluster"] : [])], { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => { resolve(); }));
  const line = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  const failed = ended.then(() => {
    throw new Error("go run ./test/teamconsole has ended: its own output says why");
  });
  failed.catch(() => undefined); // it also ends when it is stopped
  const told = JSON.parse(await Promise.race([line, failed])) as Omit<TeamConsole, "stop">;
  return {
    ...told,
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
