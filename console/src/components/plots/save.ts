import { download } from "../download";

/** LegendEntry says what a colour means. */
export interface LegendEntry {
  label: string;
  colour: string;
}

const namespace = "http://www.w3.org/2000/svg";
const legendHeight = 24;

/** svgText is a picture as a file of its own: black on white, with its legend, and without the page's fonts. */
export function svgText(svg: SVGSVGElement, legend: readonly LegendEntry[]): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("xmlns", namespace);
  copy.setAttribute("color", "#000");
  copy.setAttribute("style", "background: #fff");
  copy.removeAttribute("aria-hidden");
  for (const style of copy.querySelectorAll("style")) style.removeAttribute("nonce");
  if (legend.length > 0) addLegend(copy, legend);
  return new XMLSerializer().serializeToString(copy);
}

function addLegend(svg: SVGSVGElement, legend: readonly LegendEntry[]): void {
  const width = Number(svg.getAttribute("width"));
  const height = Number(svg.getAttribute("height")) + legendHeight;
  svg.setAttribute("height", String(height));
  svg.setAttribute("viewBox", `0 ${-legendHeight} ${width} ${height}`);
  legend.forEach(({ label, colour }, i) => {
    const x = 8 + (i * (width - 16)) / legend.length;
    const box = svg.appendChild(document.createElementNS(namespace, "rect"));
    for (const [name, value] of Object.entries({ x, y: -18, width: 12, height: 12, fill: colour })) box.setAttribute(name, String(value));
    const text = svg.appendChild(document.createElementNS(namespace, "text"));
    for (const [name, value] of Object.entries({ x: x + 16, y: -8, fill: "currentColor" })) text.setAttribute(name, String(value));
    text.textContent = label;
  });
}

/** saveSVG has the browser save a picture. */
export function saveSVG(svg: SVGSVGElement, legend: readonly LegendEntry[], file: string): void {
  download(file, svgText(svg, legend), "image/svg+xml");
}
