/** cspNonce is what style elements need by the content security policy. */
export const cspNonce = document.querySelector<HTMLMetaElement>("meta[name='csp-nonce']")?.content ?? "";

// Mantine's dialogs make a style element by the package get-nonce, which looks for the nonce under this name.
Object.assign(globalThis, { __webpack_nonce__: cspNonce });
