// Which pictures are given to an encoder, and what of it is worth sending. Sources beyond the limits are sent as they are.

/** A picture of a 24-megapixel camera fits. */
export const imagePixelsMax = 25_000_000;
/** The least size of an original: what is smaller fits into a packet or two as it is, bytes. */
export const imageFromBytes = 2_048;
/** The largest size of an original, because it is in memory while its forms are made, bytes. A photograph of so many pixels seldom reaches it. */
export const imageToBytes = 20 * 2 ** 20;

/** A form has to save so much, or the original is sent: it is decoded faster, and is kept once. */
const savedShareLeast = 1 / 10;

/** Whether a form is so much smaller than the original that it is sent in its place. */
export function savesEnough(originalBytes: number, formBytes: number): boolean {
  return formBytes <= originalBytes * (1 - savedShareLeast);
}
