/** closeSocket closes a WebSocket. One that still connects is closed when it is open, as browsers report the other as an error. */
export function closeSocket(socket: WebSocket): void {
  if (socket.readyState !== WebSocket.CONNECTING) {
    socket.close();
    return;
  }
  socket.addEventListener("open", () => {
    socket.close();
  });
}
