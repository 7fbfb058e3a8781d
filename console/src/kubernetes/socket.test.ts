// @vitest-environment node
import { expect, test } from "vitest";
import { closeSocket } from "./socket";

class Socket extends EventTarget {
  closed = 0;
  constructor(public readyState: number) {
    super();
  }
  close() {
    this.closed++;
  }
}

test("a socket that is open is closed at once", () => {
  const socket = new Socket(WebSocket.OPEN);
  closeSocket(socket as unknown as WebSocket);
  expect(socket.closed).toBe(1);
});

test("a socket that connects is closed when it is open", () => {
  const socket = new Socket(WebSocket.CONNECTING);
  closeSocket(socket as unknown as WebSocket);
  expect(socket.closed).toBe(0);
  socket.dispatchEvent(new Event("open"));
  expect(socket.closed).toBe(1);
});
