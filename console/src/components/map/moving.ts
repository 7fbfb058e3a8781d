import { placed, type Box, type Wish } from "./labels";
import type { Point } from "./projection";
import { styleOf } from "./scale";
import { hasRoomForSymbols, type MapLink, type Scene } from "./scene";
import { ink, labelHeight, type Scheme, type Sprites } from "./sprites";
import { isInView, type View } from "./view";

/** Frame is what is drawn at one moment. */
export interface Frame {
  scene: Scene;
  view: View;
  scheme: Scheme;
  sprites: Sprites;
  links: readonly MapLink[];
  /** pixels of the nodes, in the order of the scene; absent where a node is nowhere. */
  pixels: readonly (Point | undefined)[];
  /** reported are the pixels at which others believe the nodes; absent where they know nothing. */
  reported: readonly (Point | undefined)[];
  /** indexOf a node by its name. */
  indexOf: ReadonlyMap<string, number>;
  jammers: readonly { pixel: Point; radius: number | undefined; name: string }[];
  handles: readonly { pixel: Point; label: string; selected: boolean }[];
  hovered: string | undefined;
  hoveredLink: MapLink | undefined;
}

/** drawMoving draws links, jammers, nodes and their names. */
export function drawMoving(context: CanvasRenderingContext2D, frame: Frame): void {
  context.clearRect(0, 0, frame.view.width, frame.view.height);
  drawLinks(context, frame);
  drawJammers(context, frame);
  drawHandles(context, frame);
  drawReported(context, frame);
  const asSymbols = hasRoomForSymbols(frame.pixels, frame.view.width, frame.view.height);
  drawNodes(context, frame, asSymbols);
  drawLabels(context, frame, asSymbols);
}

// Dashes cost much where there are many links; widths and colours still differ.
const mostDashed = 600;
// Links of others are faded, so that those of the selected node can be followed.
const fadedAlpha = 0.15;

function drawLinks(context: CanvasRenderingContext2D, frame: Frame): void {
  const { selected } = frame.scene;
  const isOwn = ({ from, to }: MapLink) => selected === undefined || from === selected || to === selected;
  if (selected !== undefined) {
    context.globalAlpha = fadedAlpha;
    drawClasses(context, frame, frame.links.filter((link) => !isOwn(link)));
    context.globalAlpha = 1;
  }
  drawClasses(context, frame, frame.links.filter(isOwn));
  if (!frame.hoveredLink) return;
  context.lineWidth = 5;
  context.globalAlpha = 0.5;
  context.strokeStyle = styleOf(frame.hoveredLink.linkClass, frame.scheme).colour;
  context.beginPath();
  line(context, frame, frame.hoveredLink);
  context.stroke();
  context.globalAlpha = 1;
}

function drawClasses(context: CanvasRenderingContext2D, frame: Frame, links: readonly MapLink[]): void {
  const dashed = links.length <= mostDashed;
  for (let linkClass = -1; linkClass < 5; linkClass++) {
    const style = styleOf(linkClass, frame.scheme);
    context.strokeStyle = style.colour;
    context.lineWidth = style.width;
    context.setLineDash(dashed ? [...style.dash] : []);
    context.beginPath();
    for (const link of links) if (link.linkClass === linkClass) line(context, frame, link);
    context.stroke();
  }
  context.setLineDash([]);
}

function line(context: CanvasRenderingContext2D, frame: Frame, link: MapLink): void {
  const from = frame.pixels[frame.indexOf.get(link.from) ?? -1];
  const to = frame.pixels[frame.indexOf.get(link.to) ?? -1];
  if (!from || !to || isBeside(frame.view, from, to)) return;
  context.moveTo(from.x, from.y);
  context.lineTo(to.x, to.y);
}

/** isBeside reports whether a line lies wholly on one outer side of the view. */
function isBeside({ width, height }: View, a: Point, b: Point): boolean {
  return (a.x < 0 && b.x < 0) || (a.y < 0 && b.y < 0) || (a.x > width && b.x > width) || (a.y > height && b.y > height);
}

function drawJammers(context: CanvasRenderingContext2D, frame: Frame): void {
  context.strokeStyle = ink[frame.scheme].jammer;
  context.fillStyle = ink[frame.scheme].jammer;
  context.lineWidth = 2;
  for (const { pixel, radius } of frame.jammers) {
    if (radius !== undefined) drawRange(context, pixel, radius);
    context.beginPath();
    for (let ray = 0; ray < 8; ray++) {
      const [x, y] = [Math.cos((ray * Math.PI) / 4), Math.sin((ray * Math.PI) / 4)];
      context.moveTo(pixel.x + 4 * x, pixel.y + 4 * y);
      context.lineTo(pixel.x + 11 * x, pixel.y + 11 * y);
    }
    context.stroke();
    context.beginPath();
    context.arc(pixel.x, pixel.y, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

function drawRange(context: CanvasRenderingContext2D, pixel: Point, radius: number): void {
  context.beginPath();
  context.arc(pixel.x, pixel.y, radius, 0, 2 * Math.PI);
  context.globalAlpha = 0.1;
  context.fill();
  context.globalAlpha = 1;
  context.setLineDash([10, 4, 2, 4]);
  context.stroke();
  context.setLineDash([]);
}

function drawHandles(context: CanvasRenderingContext2D, frame: Frame): void {
  const { dot, edge, mark } = ink[frame.scheme];
  for (const { pixel, selected } of frame.handles) {
    const half = selected ? 7 : 5;
    context.fillStyle = selected ? mark : dot;
    context.strokeStyle = selected ? dot : edge;
    context.lineWidth = 2;
    context.fillRect(pixel.x - half, pixel.y - half, 2 * half, 2 * half);
    context.strokeRect(pixel.x - half, pixel.y - half, 2 * half, 2 * half);
  }
}

/** drawReported draws a ring at each reported position, with a line to the node. */
function drawReported(context: CanvasRenderingContext2D, { pixels, reported, scheme, view }: Frame): void {
  context.strokeStyle = ink[scheme].mark;
  context.lineWidth = 1.25;
  context.beginPath();
  reported.forEach((said, index) => {
    const real = pixels[index];
    if (!said || !real || isBeside(view, said, real)) return;
    context.moveTo(said.x + 4, said.y);
    context.arc(said.x, said.y, 4, 0, 2 * Math.PI);
    context.moveTo(said.x, said.y);
    context.lineTo(real.x, real.y);
  });
  context.stroke();
}

function drawNodes(context: CanvasRenderingContext2D, frame: Frame, asSymbols: boolean): void {
  frame.scene.nodes.forEach((node, index) => {
    const pixel = frame.pixels[index];
    if (!pixel || !isInView(frame.view, pixel, 40)) return;
    const sprite = frame.sprites.node(node.symbol, frame.scene.silent.has(node.name), asSymbols);
    context.drawImage(sprite.image, Math.round(pixel.x - sprite.anchor.x), Math.round(pixel.y - sprite.anchor.y), sprite.width, sprite.height);
    if (node.name === frame.scene.selected || node.name === frame.hovered) {
      context.strokeStyle = ink[frame.scheme].mark;
      context.lineWidth = node.name === frame.scene.selected ? 2.5 : 1.25;
      context.beginPath();
      context.arc(pixel.x, pixel.y, asSymbols ? 24 : 10, 0, 2 * Math.PI);
      context.stroke();
    }
  });
}

const mostLabels = 80;

interface Named {
  text: string;
  strong: boolean;
  wish: Wish;
}

function drawLabels(context: CanvasRenderingContext2D, frame: Frame, asSymbols: boolean): void {
  const named = [...labelsOfNodes(frame, asSymbols), ...frame.jammers.map(({ pixel, name }) => labelOf(frame, name, pixel, 14, true))];
  named.push(...frame.handles.map(({ pixel, label, selected }) => labelOf(frame, label, pixel, 10, selected)));
  named.sort((a, b) => Number(b.strong) - Number(a.strong));
  const places = placed(named.map(({ wish }) => wish), labelHeight, mostLabels, obstaclesOf(frame, asSymbols));
  places.forEach((at, index) => {
    const label = named[index];
    if (!at || !label) return;
    const sprite = frame.sprites.label(label.text, label.strong);
    context.drawImage(sprite.image, Math.round(at.x), Math.round(at.y - labelHeight / 2), sprite.width, sprite.height);
  });
}

/** obstaclesOf a frame are the symbols and dots, which no name may cover. */
function obstaclesOf(frame: Frame, asSymbols: boolean): Box[] {
  const [half, high] = asSymbols ? [17, 12] : [4, 4];
  return frame.pixels.flatMap((pixel) => (pixel && isInView(frame.view, pixel, 40) ? [{ left: pixel.x - half, right: pixel.x + half, top: pixel.y - high, bottom: pixel.y + high }] : []));
}

function labelsOfNodes(frame: Frame, asSymbols: boolean): Named[] {
  const labels: Named[] = [];
  frame.scene.nodes.forEach((node, index) => {
    const pixel = frame.pixels[index];
    if (!pixel || !isInView(frame.view, pixel)) return;
    const hops = frame.scene.selected === undefined ? 0 : (frame.scene.hops.get(node.name) ?? 0);
    const text = hops === 0 ? node.name : `${node.name} · ${hops} ${hops === 1 ? "hop" : "hops"}`;
    labels.push(labelOf(frame, text, pixel, asSymbols ? 20 : 8, node.name === frame.scene.selected || node.name === frame.hovered));
  });
  return labels;
}

function labelOf(frame: Frame, text: string, point: Point, gap: number, strong: boolean): Named {
  return { text, strong, wish: { point, gap, width: frame.sprites.label(text, strong).width } };
}
