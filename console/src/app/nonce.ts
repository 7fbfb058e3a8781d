/** cspNonce is what style elements need by the content security policy. */
export const cspNonce = document.querySelector<HTMLMetaElement>("meta[name='csp-nonce']")?.content ?? "";
