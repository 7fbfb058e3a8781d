import { wordOf, type Fields } from "../text/values";

/** sources of a messaging service's requests, of which it has one at most, with their words. */
export const sources = { push: "one each period", messages: "a script", configMap: "a script in a ConfigMap" } as const;

export type Source = keyof typeof sources;

export function sourceOf(messaging: Fields): Source | undefined {
  return (Object.keys(sources) as Source[]).find((source) => messaging[source] !== undefined);
}

/** beginningOf the requests of a service, which a node sends. */
export function beginningOf(source: Source, node: string): unknown {
  if (source === "push") return { to: "all", period: "10s" };
  if (source === "messages") return [{ at: "10s", from: node, to: "all", text: "contact" }];
  return { name: "messages", key: "messages.csv" };
}

const httpTransports = ["http", "soap"];
const soapTransports = ["soap", "soap-udp"];
const multicastTransports = ["coap", "soap-udp"];

/** takes reports whether a service has a setting, by its transport and as a server's client; all have those that are not named here. */
export function takes(messaging: Fields, setting: string): boolean {
  const transport = wordOf(messaging.transport);
  if (["reply", "multicast", "network"].includes(setting) && messaging.server !== undefined) return false; // the server answers
  if (setting === "path") return messaging.server !== undefined;
  if (setting === "http" || setting === "via") return httpTransports.includes(transport);
  if (setting === "receipt") return !httpTransports.includes(transport);
  if (setting === "coap") return transport === "coap";
  if (setting === "soap") return soapTransports.includes(transport);
  if (setting === "multicast" || setting === "network") return multicastTransports.includes(transport);
  return true;
}

/** foreign are the settings of a service that it does not have with others. */
export function foreign(messaging: Fields): string[] {
  const isAllowed = (setting: string) => takes(messaging, setting) || (setting === "receipt" && wordOf(messaging.receipt) === "true");
  return Object.keys(messaging).filter((setting) => !isAllowed(setting));
}

/** portOf a transport, where a service does not say another one. */
export function portOf(transport: string): string {
  if (httpTransports.includes(transport)) return "8080";
  return transport === "soap-udp" ? "3702" : "5683";
}
