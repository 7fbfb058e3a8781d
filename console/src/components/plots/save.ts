/** svgText is a picture as a file of its own: black on white, and without the page's fonts. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("color", "#000");
  copy.setAttribute("style", "background: #fff");
  copy.removeAttribute("aria-hidden");
  for (const style of copy.querySelectorAll("style")) style.removeAttribute("nonce");
  return new XMLSerializer().serializeToString(copy);
}

/** saveSVG has the browser save a picture. */
export function saveSVG(svg: SVGSVGElement, file: string): void {
  const address = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
  // The download has begun when the event is over.
  setTimeout(() => {
    URL.revokeObjectURL(address);
  });
}
