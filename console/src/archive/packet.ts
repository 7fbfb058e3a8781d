/** PacketSummary says what a frame is, in one line of a table. */
export interface PacketSummary {
  source: string;
  destination: string;
  protocol: string;
  info: string;
}

const ethernet = 1;

// Ports at which the programs of the platform serve, and others that are often seen.
const ports: Record<number, string> = {
  53: "DNS", 80: "HTTP", 269: "OLSRv2", 443: "HTTPS", 698: "OLSR", 1883: "MQTT", 5222: "XMPP", 5672: "AMQP", 5683: "CoAP", 6696: "Babel", 8883: "MQTT over TLS", 61613: "STOMP",
};

/** summarise tells a frame's ends and protocol as far as its captured bytes go. */
export function summarise(linkType: number, data: Uint8Array): PacketSummary {
  if (linkType !== ethernet) return { source: "", destination: "", protocol: `link type ${linkType}`, info: "" };
  if (data.length < 14) return { source: "", destination: "", protocol: "Ethernet", info: "cut off" };
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 12;
  let type = view.getUint16(at);
  while (type === 0x8100 && at + 6 <= data.length) {
    at += 4;
    type = view.getUint16(at);
  }
  const frame = { source: mac(data, 6), destination: mac(data, 0), protocol: `Ethernet 0x${type.toString(16).padStart(4, "0")}`, info: "" };
  const rest = new DataView(view.buffer, view.byteOffset + at + 2, Math.max(0, data.length - at - 2));
  if (type === 0x0800) return ipv4(rest) ?? { ...frame, protocol: "IPv4", info: "cut off" };
  if (type === 0x86dd) return ipv6(rest) ?? { ...frame, protocol: "IPv6", info: "cut off" };
  if (type === 0x0806) return arp(rest) ?? { ...frame, protocol: "ARP", info: "cut off" };
  return frame;
}

function mac(data: Uint8Array, at: number): string {
  return Array.from(data.subarray(at, at + 6), (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

function address4(view: DataView, at: number): string {
  return [0, 1, 2, 3].map((i) => view.getUint8(at + i)).join(".");
}

function address6(view: DataView, at: number): string {
  const words = Array.from({ length: 8 }, (_, i) => view.getUint16(at + 2 * i).toString(16)).join(":");
  const zeros = words.match(/(?:^|:)0(?::0)+(?=:|$)/g)?.sort((a, b) => b.length - a.length)[0];
  return zeros === undefined ? words : words.replace(zeros, ":").replace(/^:(?!:)|(?<!:):$/, (colon) => colon + ":");
}

function arp(view: DataView): PacketSummary | undefined {
  if (view.byteLength < 28 || view.getUint16(2) !== 0x0800) return undefined;
  const [source, destination] = [address4(view, 14), address4(view, 24)];
  return { source, destination, protocol: "ARP", info: view.getUint16(6) === 1 ? `who has ${destination}?` : `${source} is here` };
}

function ipv4(view: DataView): PacketSummary | undefined {
  if (view.byteLength < 20) return undefined;
  const header = 4 * (view.getUint8(0) & 0x0f);
  if (header < 20) return undefined;
  const ends = { source: address4(view, 12), destination: address4(view, 16) };
  const offset = view.getUint16(6) & 0x1fff;
  if (offset > 0) return { ...ends, protocol: "IPv4", info: `fragment from byte ${8 * offset}` };
  return { ...ends, ...transport(view.getUint8(9), view, header) };
}

function ipv6(view: DataView): PacketSummary | undefined {
  if (view.byteLength < 40) return undefined;
  return { source: address6(view, 8), destination: address6(view, 24), ...transport(view.getUint8(6), view, 40) };
}

function transport(protocol: number, view: DataView, at: number): Pick<PacketSummary, "protocol" | "info"> {
  const left = view.byteLength - at;
  if (protocol === 6) return left >= 14 ? tcp(view, at) : { protocol: "TCP", info: "cut off" };
  if (protocol === 17) {
    if (left < 8) return { protocol: "UDP", info: "cut off" };
    const [from, to] = [view.getUint16(at), view.getUint16(at + 2)];
    return { protocol: ports[to] ?? ports[from] ?? "UDP", info: `${from} → ${to}, ${Math.max(0, view.getUint16(at + 4) - 8)} bytes` };
  }
  if (protocol === 1) return { protocol: "ICMP", info: left >= 1 ? icmp(view.getUint8(at)) : "cut off" };
  if (protocol === 58) return { protocol: "ICMPv6", info: left >= 1 ? `type ${view.getUint8(at)}` : "cut off" };
  return { protocol: protocol === 2 ? "IGMP" : `IP protocol ${protocol}`, info: "" };
}

function tcp(view: DataView, at: number): Pick<PacketSummary, "protocol" | "info"> {
  const [from, to] = [view.getUint16(at), view.getUint16(at + 2)];
  const bits = view.getUint8(at + 13);
  const flags = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"].filter((_, i) => bits & (1 << i));
  return { protocol: ports[to] ?? ports[from] ?? "TCP", info: `${from} → ${to} [${flags.join(", ")}] seq ${view.getUint32(at + 4)} ack ${view.getUint32(at + 8)}` };
}

function icmp(type: number): string {
  return { 0: "echo reply", 3: "destination unreachable", 8: "echo request", 11: "time exceeded" }[type] ?? `type ${type}`;
}
