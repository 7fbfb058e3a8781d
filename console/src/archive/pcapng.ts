/** CapturedPacket is a frame of a capture. */
export interface CapturedPacket {
  /** nanoseconds since the Unix epoch. */
  nanoseconds: bigint;
  /** link type of the interface, by the registry of the Tcpdump group; 1 is Ethernet. */
  linkType: number;
  /** length of the frame on the link, of which data may be the beginning. */
  length: number;
  data: Uint8Array;
}

/** Capture is the beginning of a pcapng file. */
export interface Capture {
  packets: CapturedPacket[];
  /** problem says why reading ended before the end of the bytes. */
  problem?: string;
  /** more is set if there is more than was asked for, or the last block is not complete. */
  more: boolean;
}

interface Interface {
  linkType: number;
  /** Units of time in a second. */
  unitsPerSecond: bigint;
}

const sectionHeader = 0x0a0d0d0a;
const interfaceDescription = 1;
const enhancedPacket = 6;
const timeResolution = 9;
const smallestBlock = 12;
const largestBlock = 16 << 20;

/** readPcapng reads up to so many packets from the beginning of a pcapng file (draft-ietf-opsawg-pcapng). */
export function readPcapng(bytes: Uint8Array, most: number): Capture {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const packets: CapturedPacket[] = [];
  let interfaces: Interface[] = [];
  let little = true;
  for (let at = 0; at + smallestBlock <= bytes.length; ) {
    const isSection = view.getUint32(at, true) === sectionHeader;
    if (isSection) {
      const order = orderAt(view, at + 8);
      if (order === undefined) return { packets, more: false, problem: `the section at byte ${at} has no byte order` };
      little = order === "little";
      interfaces = [];
    } else if (at === 0) return { packets, more: false, problem: "this is not a pcapng file: it does not begin with a section" };
    const length = view.getUint32(at + 4, little);
    if (length < smallestBlock || length % 4 !== 0 || length > largestBlock) return { packets, more: false, problem: `the block at byte ${at} has the impossible length ${length}` };
    if (at + length > bytes.length) return { packets, more: true };
    const body = new DataView(view.buffer, view.byteOffset + at + 8, length - smallestBlock);
    const type = view.getUint32(at, little);
    if (type === interfaceDescription) {
      const described = interfaceOf(body, little);
      if (!described) return { packets, more: false, problem: `the interface at byte ${at} is too short` };
      interfaces.push(described);
    }
    if (type === enhancedPacket) {
      if (packets.length >= most) return { packets, more: true };
      const packet = packetOf(body, little, interfaces);
      if (typeof packet === "string") return { packets, more: false, problem: `the packet at byte ${at} ${packet}` };
      packets.push(packet);
    }
    at += length;
  }
  return { packets, more: false };
}

function orderAt(view: DataView, at: number): "little" | "big" | undefined {
  const magic = view.getUint32(at, true);
  if (magic === 0x1a2b3c4d) return "little";
  return magic === 0x4d3c2b1a ? "big" : undefined;
}

function interfaceOf(body: DataView, little: boolean): Interface | undefined {
  if (body.byteLength < 8) return undefined;
  let unitsPerSecond = 1_000_000n;
  for (let at = 8; at + 4 <= body.byteLength; ) {
    const code = body.getUint16(at, little);
    const length = body.getUint16(at + 2, little);
    if (code === 0 || at + 4 + length > body.byteLength) break;
    if (code === timeResolution && length === 1) unitsPerSecond = resolution(body.getUint8(at + 4));
    at += 4 + 4 * Math.ceil(length / 4);
  }
  return { linkType: body.getUint16(0, little), unitsPerSecond };
}

// The highest bit chooses between powers of two and of ten.
function resolution(value: number): bigint {
  return value & 0x80 ? 2n ** BigInt(value & 0x7f) : 10n ** BigInt(Math.min(value, 30));
}

function packetOf(body: DataView, little: boolean, interfaces: Interface[]): CapturedPacket | string {
  if (body.byteLength < 20) return "is too short";
  const from = interfaces[body.getUint32(0, little)];
  if (!from) return "is of an interface that was not described";
  const time = (BigInt(body.getUint32(4, little)) << 32n) | BigInt(body.getUint32(8, little));
  const captured = body.getUint32(12, little);
  if (20 + captured > body.byteLength) return `has ${captured} bytes, which are more than its block has`;
  return {
    nanoseconds: (time * 1_000_000_000n) / from.unitsPerSecond,
    linkType: from.linkType,
    length: body.getUint32(16, little),
    data: new Uint8Array(body.buffer, body.byteOffset + 20, captured),
  };
}
