// How alike two pictures look: the structural similarity of their luminance (Wang, Bovik, Sheikh and Simoncelli, 2004), over windows of 8 × 8 points, four points
// apart. 1 means the same; people begin to see a difference at some 0.95, and are bothered by one well below 0.9.

/** Luminance, a byte a point, row after row. */
export type Luminance = {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
};

const windowPoints = 8;
const stepPoints = 4;
/** The constants of the paper, for 8 bits: (0.01 × 255)² and (0.03 × 255)². */
const c1 = 6.5025;
const c2 = 58.5225;

/** Returns the mean over all windows. Throws for pictures of other sizes. */
export function ssimOf(one: Luminance, other: Luminance): number {
  const { width, height } = one;
  if (other.width !== width || other.height !== height)
    throw new RangeError(`${width}×${height} and ${other.width}×${other.height}`);
  let sum = 0;
  let windows = 0;
  for (let y = 0; y + windowPoints <= height; y += stepPoints)
    for (let x = 0; x + windowPoints <= width; x += stepPoints) {
      sum += ssimOfWindow(one, other, y * width + x);
      windows += 1;
    }
  return windows === 0 ? 1 : sum / windows;
}

function ssimOfWindow(one: Luminance, other: Luminance, from: number): number {
  const n = windowPoints ** 2;
  let [a, b, aa, bb, ab] = [0, 0, 0, 0, 0];
  for (let row = 0; row < windowPoints; row++) {
    const at = from + row * one.width;
    for (let i = at; i < at + windowPoints; i++) {
      const x = one.data[i] ?? 0;
      const y = other.data[i] ?? 0;
      a += x;
      b += y;
      aa += x * x;
      bb += y * y;
      ab += x * y;
    }
  }
  const meanA = a / n;
  const meanB = b / n;
  const varianceA = (aa - a * meanA) / (n - 1);
  const varianceB = (bb - b * meanB) / (n - 1);
  const covariance = (ab - a * meanB) / (n - 1);
  const light = (2 * meanA * meanB + c1) / (meanA ** 2 + meanB ** 2 + c1);
  const structure = (2 * covariance + c2) / (varianceA + varianceB + c2);
  return light * structure;
}
