import "@xterm/xterm/css/xterm.css";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { closeSocket } from "../../kubernetes/socket";
import { allowElements } from "./allowed";
import { protocol, received, resized, shellPath, typed } from "./exec";

/** Place of a shell. */
export interface Place {
  namespace: string;
  pod: string;
  container: string;
}

/** openShell shows a shell in an element until the returned function is called. leave is called when F6 is pressed. */
export function openShell(element: HTMLElement, place: Place, onEnd: (message: string) => void, leave: () => void): () => void {
  const terminal = new Terminal({ cursorBlink: false, fontFamily: "ui-monospace, monospace", fontSize: 14, screenReaderMode: true, scrollback: 5000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  const disallow = allowElements();
  try {
    terminal.open(element);
    fit.fit();
  } catch (reason) {
    terminal.dispose();
    disallow();
    throw reason;
  }
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "F6") return true;
    leave();
    return false;
  });
  const url = new URL(shellPath(place.namespace, place.pod, place.container), window.location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url, protocol);
  socket.binaryType = "arraybuffer";
  let ended = "";
  const send = (message: Uint8Array<ArrayBuffer>) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(message);
  };
  socket.onopen = () => {
    send(resized(terminal.cols, terminal.rows));
    terminal.focus();
  };
  socket.onmessage = (event: MessageEvent<unknown>) => {
    if (!(event.data instanceof ArrayBuffer)) return;
    const message = received(event.data);
    if (message.kind === "output") terminal.write(message.bytes);
    if (message.kind === "end") ended = message.message;
  };
  socket.onclose = () => {
    onEnd(ended || "The connection to the node has ended, or Kubernetes has refused it.");
  };
  terminal.onData((text) => {
    send(typed(text));
  });
  terminal.onResize(({ cols, rows }) => {
    send(resized(cols, rows));
  });
  const observer = new ResizeObserver(() => {
    fit.fit();
  });
  observer.observe(element);
  return () => {
    observer.disconnect();
    socket.onopen = null;
    socket.onclose = null;
    closeSocket(socket);
    terminal.dispose();
    disallow();
  };
}
