import "@xterm/xterm/css/xterm.css";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { cspNonce } from "../../app/nonce";
import { closeSocket } from "../../kubernetes/socket";
import { protocol, received, resized, shellPath, typed } from "./exec";

/** Place of a shell. */
export interface Place {
  namespace: string;
  pod: string;
  container: string;
}

/** allowed is an element that the content security policy accepts: style elements carry the nonce. */
function allowed(element: HTMLElement): HTMLElement {
  if (element instanceof HTMLStyleElement) element.setAttribute("nonce", cspNonce);
  return element;
}

/** allowing is a document whose new elements are allowed. */
function allowing(page: Document): Document {
  return new Proxy(page, {
    get(target, name) {
      if (name === "createElement") return (tag: string) => allowed(target.createElement(tag));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** openIn an element. The terminal makes some of its elements with the page's own document, in spite of documentOverride. */
function openIn(terminal: Terminal, element: HTMLElement): void {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- only the form for unknown names is
  const make = document.createElement.bind(document);
  Object.defineProperty(document, "createElement", { configurable: true, value: (tag: string) => allowed(make(tag)) });
  try {
    terminal.open(element);
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

/** openShell shows a shell in an element until the returned function is called. leave is called when F6 is pressed. */
export function openShell(element: HTMLElement, place: Place, onEnd: (message: string) => void, leave: () => void): () => void {
  const terminal = new Terminal({ documentOverride: allowing(document), cursorBlink: false, fontFamily: "ui-monospace, monospace", fontSize: 14, screenReaderMode: true, scrollback: 5000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  openIn(terminal, element);
  fit.fit();
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
  };
}
