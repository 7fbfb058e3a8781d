import { cspNonce } from "../../app/nonce";

// The content security policy refuses style attributes, and allows what a script sets of an element's style.
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

function allowed(element: HTMLElement): HTMLElement {
  if (element instanceof HTMLStyleElement) element.setAttribute("nonce", cspNonce);
  else if (element instanceof HTMLSpanElement) element.setAttribute = setAttribute;
  return element;
}

let users = 0;

/**
 * allowElements lets the policy accept the elements that the terminal makes, until the returned function is called.
 * Style elements carry the nonce, and style attributes are set by script. The terminal makes them with the page's own document, whatever its options say.
 */
export function allowElements(): () => void {
  if (users++ === 0) {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- only the form for unknown names is
    const make = document.createElement.bind(document);
    Object.defineProperty(document, "createElement", { configurable: true, value: (tag: string, options?: ElementCreationOptions) => allowed(make(tag, options)) });
  }
  let hasEnded = false;
  return () => {
    if (hasEnded) return;
    hasEnded = true;
    if (--users === 0) Reflect.deleteProperty(document, "createElement");
  };
}
