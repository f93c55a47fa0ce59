// Takes from a WebP what EXIF says of its orientation. Browsers turn JPEG, PNG and AVIF as their orientation says, and WebP never (Chromium 156); decoders
// turn it, or hand the orientation on to what is encoded.

/** The place of the flags of VP8X (RFC 9649 §2.7), and the flag that there is EXIF. */
const flagsAt = 20;
const exifFlag = 0x08;

/** Returns the WebP as one that has no EXIF: decoders look for it where the flag is set. The bytes are those given where there is none; else they are a copy. */
export function webpWithoutExif(webp: Uint8Array): Uint8Array {
  const flags = webp[flagsAt] ?? 0;
  const isExtended = String.fromCharCode(...webp.subarray(12, 16)) === "VP8X";
  if (!isExtended || (flags & exifFlag) === 0) return webp;
  const bare = new Uint8Array(webp);
  bare[flagsAt] = flags & ~exifFlag;
  return bare;
}
