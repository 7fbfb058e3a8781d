import type { Page } from "@playwright/test";

/** drawnOn the map's ground: the share of its pixels, and a digest that changes with them. */
export function drawnOn(page: Page): Promise<{ share: number; digest: number }> {
  return page.locator("[data-map]").evaluate((map) => {
    const moving = [...map.querySelectorAll("canvas")][1];
    if (!moving) throw new Error("the map has no canvas of what moves");
    // Chromium warns of a canvas that is read often, so that a copy is read.
    const copy = new OffscreenCanvas(moving.width, moving.height).getContext("2d", { willReadFrequently: true });
    copy?.drawImage(moving, 0, 0);
    const pixels = copy?.getImageData(0, 0, moving.width, moving.height).data ?? new Uint8ClampedArray();
    const found = { share: 0, digest: 0 };
    for (let i = 0; i < pixels.length; i += 4) {
      if ((pixels[i + 3] ?? 0) < 40) continue;
      found.share += 4 / pixels.length;
      found.digest = (Math.imul(found.digest, 31) + i + (pixels[i] ?? 0)) | 0;
    }
    return found;
  });
}
