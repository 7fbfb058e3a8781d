import { crc32, deflateSync } from "node:zlib";

const side = 256;
const deepest = 12;

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** png of a tile in one colour. */
function png(colour: readonly [number, number, number]): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2], 8); // 8 bits of red, green and blue
  const row = Buffer.concat([Buffer.from([0]), Buffer.concat(Array.from({ length: side }, () => Buffer.from(colour)))]);
  const rows = Buffer.concat(Array.from({ length: side }, () => row));
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}

/** pmtilesOf one colour: a file in which all tiles down to zoom 12 are the same one. */
export function pmtilesOf(colour: readonly [number, number, number]): Buffer {
  const tile = png(colour);
  const tiles = (4 ** (deepest + 1) - 1) / 3;
  const root = Buffer.from([1, 0, ...varint(tiles), ...varint(tile.length), 1]);
  const metadata = Buffer.from("{}");
  const header = Buffer.alloc(127);
  header.write("PMTiles", 0, "latin1");
  header[7] = 3;
  const at = [127, root.length, 127 + root.length, metadata.length, 0, 0, 127 + root.length + metadata.length, tile.length, tiles, 1, 1];
  at.forEach((value, i) => header.writeBigUInt64LE(BigInt(value), 8 + 8 * i));
  header.set([1, 1, 1, 2, 0, deepest], 96); // clustered, nothing compressed, PNG, zooms
  [-1_800_000_000, -850_000_000, 1_800_000_000, 850_000_000].forEach((value, i) => header.writeInt32LE(value, 102 + 4 * i));
  return Buffer.concat([header, root, metadata, tile]);
}
