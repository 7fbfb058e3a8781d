import { startConsole } from "./server";

/** One console serves all tests; its address is in the environment. */
export default async function setup(): Promise<() => void> {
  const { origin, token, stop } = await startConsole();
  process.env.CONSOLE_ORIGIN = origin;
  process.env.CONSOLE_TOKEN = token;
  return stop;
}
