import type { RadioChange } from "../archive/types";

/** describeChange says what a change of a network does, such as "wan, hq to veh: delay 200ms, loss 3%". */
export function describeChange(change: RadioChange): string {
  const parts: string[] = [];
  if (change.silent !== undefined) parts.push(change.silent ? "silent" : "no longer silent");
  for (const [key, value] of Object.entries({ ...change.link, ...change.radio })) parts.push(`${wordsOf(key)} ${valueOf(value)}`);
  if (change.jammer) parts.push(describeJammer(change.jammer));
  if (change.schedule !== undefined) parts.push("another TDMA schedule");
  return `${change.network}${between(change)}: ${parts.join(", ")}`;
}

function between({ from, to }: RadioChange): string {
  const sender = from === "*" ? undefined : from;
  const receiver = to === "*" ? undefined : to;
  if (sender && receiver) return `, ${sender} to ${receiver}`;
  if (sender) return `, from ${sender}`;
  return receiver ? `, to ${receiver}` : "";
}

function describeJammer(jammer: NonNullable<RadioChange["jammer"]>): string {
  if (jammer.off) return `jammer ${jammer.name} off`;
  if (jammer.silent) return `jammer ${jammer.name} silent`;
  const at = jammer.position ? ` at ${jammer.position.latitude}, ${jammer.position.longitude}` : "";
  return `jammer ${jammer.name}${jammer.power ? ` ${jammer.power}` : ""}${at}`;
}

function wordsOf(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function valueOf(value: unknown): string {
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "object" && value !== null) {
    return Object.entries(value)
      .map(([key, inner]) => `${wordsOf(key)} ${valueOf(inner)}`)
      .join(", ");
  }
  return String(value);
}
