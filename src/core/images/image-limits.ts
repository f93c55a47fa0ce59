// What is asked of an encoder at most. Sources beyond it are sent as they are.

/** A picture of a 24-megapixel camera fits. */
export const imagePixelsMax = 25_000_000;
/** 16 MiB, which a photograph of so many pixels seldom reaches. */
export const imageSourceBytesMax = 16 * 2 ** 20;

/** A form has to save so much, or the original is sent: it is decoded faster, and is kept once. */
const savedShareLeast = 1 / 10;

/** Whether a form is so much smaller than the original that it is sent in its place. */
export function savesEnough(originalBytes: number, formBytes: number): boolean {
  return formBytes <= originalBytes * (1 - savedShareLeast);
}
