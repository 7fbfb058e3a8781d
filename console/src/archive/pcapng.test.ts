// @vitest-environment node
import { expect, test } from "vitest";
import { capture } from "./capture.fixture";
import { summarise } from "./packet";
import { readPcapng } from "./pcapng";

test("packets of radiod have nanoseconds, their lengths and their bytes", () => {
  const { packets, problem } = readPcapng(capture, 100);
  expect(problem).toBeUndefined();
  expect(packets.length).toBeGreaterThanOrEqual(3);
  expect(packets[0]).toMatchObject({ nanoseconds: 0x18ebd6caafaef454n, linkType: 1, length: 81 });
  expect(packets[1]).toMatchObject({ length: 119 });
  expect(packets[1]?.data.length).toBe(96);
});

test("a packet is told by its ends and its protocol", () => {
  const first = readPcapng(capture, 1).packets[0];
  expect(first && summarise(first.linkType, first.data)).toEqual({ source: "198.18.63.1", destination: "224.0.0.109", protocol: "OLSRv2", info: "269 → 269, 39 bytes" });
});

test("no more packets are read than are wanted", () => {
  const { packets, more } = readPcapng(capture, 2);
  expect([packets.length, more]).toEqual([2, true]);
});

test("a file that is cut off gives the packets before the cut", () => {
  const whole = readPcapng(capture, 100).packets.length;
  for (let cut = 0; cut < capture.length; cut++) {
    const { packets, problem } = readPcapng(capture.slice(0, cut), 100);
    expect(packets.length).toBeLessThanOrEqual(whole);
    expect(problem).toBeUndefined();
  }
});

// Draws are the same in each run, so that a failure can be repeated.
function draws(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
}

test("broken bytes never fail, and never give more than there is", () => {
  const draw = draws(7);
  for (let i = 0; i < 3000; i++) {
    const broken = capture.slice(0, draw() % (capture.length + 1));
    for (let flips = draw() % 8; flips > 0 && broken.length > 0; flips--) broken[draw() % broken.length] = draw() & 0xff;
    for (const packet of readPcapng(broken, 50).packets) {
      expect(packet.data.length).toBeLessThanOrEqual(broken.length);
      summarise(packet.linkType, packet.data);
    }
  }
});

test("frames of any bytes and length are told", () => {
  const draw = draws(9);
  for (let i = 0; i < 3000; i++) {
    const frame = Uint8Array.from({ length: draw() % 80 }, () => draw() >>> 24);
    const type = [0x0800, 0x86dd, 0x0806, 0x8100][draw() % 4] ?? 0;
    if (frame.length > 13) frame.set([type >> 8, type & 0xff], 12);
    expect(summarise(1, frame).protocol).not.toBe("");
  }
});

test("what is no pcapng file is said to be none", () => {
  expect(readPcapng(new TextEncoder().encode("something else"), 1).problem).toBe("this is not a pcapng file: it does not begin with a section");
  expect(readPcapng(new Uint8Array(), 1)).toEqual({ packets: [], more: false });
});

function frame(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

test("ARP, TCP and IPv6 are told", () => {
  const link = "020200000002020200000001";
  expect(summarise(1, frame(`${link}08060001080006040001020200000001c6120001000000000000c6120002`))).toMatchObject({ protocol: "ARP", info: "who has 198.18.0.2?" });
  const ip = "45000028000040004006000ac6120001c6120002";
  expect(summarise(1, frame(`${link}0800${ip}c350075b0000000100000000500200000000`))).toMatchObject({ source: "198.18.0.1", protocol: "MQTT", info: "50000 → 1883 [SYN] seq 1 ack 0" });
  const six = `6000000000081140fe800000000000000000000000000001ff020000000000000000000000000001`;
  expect(summarise(1, frame(`${link}86dd${six}1a281a2800080000`))).toMatchObject({ source: "fe80::1", destination: "ff02::1", protocol: "Babel" });
});
