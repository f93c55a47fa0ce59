// `images.quality` is one number, in the scale that JPEG and WebP share. AVIF has another one, on which the same number looks better and is far larger.

/**
 * Points of both scales that look alike: the median of SSIM over 200 photographs is the same (`npm run bench -- images`). Between them the scale is a line.
 */
const alike = [
  { webp: 1, avif: 1 },
  { webp: 20, avif: 36 },
  { webp: 40, avif: 44 },
  { webp: 60, avif: 51 },
  { webp: 70, avif: 54 },
  { webp: 80, avif: 62 },
  { webp: 85, avif: 70 },
  { webp: 90, avif: 78 },
  { webp: 95, avif: 87 },
  { webp: 100, avif: 95 },
] as const;

/** Returns the quality of AVIF, 1 to 95, that looks like this one, 1 to 100, of WebP. */
export function avifQuality(quality: number): number {
  let before: { readonly webp: number; readonly avif: number } = alike[0];
  for (const point of alike) {
    if (quality <= point.webp) {
      const span = point.webp - before.webp;
      const share = span === 0 ? 0 : (quality - before.webp) / span;
      return Math.round(before.avif + share * (point.avif - before.avif));
    }
    before = point;
  }
  return before.avif;
}
