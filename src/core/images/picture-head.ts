// What the bytes of a picture say of themselves, read without decoding them: a decoder is given only what is known to be one of four formats, still, and of a
// size that is taken. Formats: JPEG (ITU-T T.81), PNG (W3C, third edition), WebP (RFC 9649), AVIF (AV1 Image File Format v1.1).

import { wholeNumber } from "../quantities.ts";
import { imagePixelsMax } from "./image-limits.ts";

export const pictureFormats = ["jpeg", "png", "webp", "avif"] as const;
export type PictureFormat = (typeof pictureFormats)[number];

export type PictureHead =
  | { readonly kind: "picture"; readonly format: PictureFormat }
  /** The reason is the end of a sentence about the picture. */
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Photographs have ten scans at most, and what searches for the best has some dozens. Each scan of a progressive JPEG goes over all of the picture again, so that a file
 * of a few kilobytes can keep a decoder busy for minutes.
 */
const scansMax = 64;

/** The format by the first bytes; undefined: none of the four. Twelve bytes are enough for all but AVIF, whose brands are read as far as they are there. */
export function pictureFormat(bytes: Uint8Array): PictureFormat | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return "jpeg";
  if (begins(bytes, 0, "\u0089PNG\r\n\u001A\n")) return "png";
  if (begins(bytes, 0, "RIFF") && begins(bytes, 8, "WEBP")) return "webp";
  return brandsOf(bytes).some((brand) => brand === "avif" || brand === "avis") ? "avif" : undefined;
}

/** Looks at all that is known without decoding. It takes at most one pass over the bytes. */
export function readPictureHead(bytes: Uint8Array): PictureHead {
  const format = pictureFormat(bytes);
  switch (format) {
    case undefined:
      return refused("is no JPEG, PNG, WebP or AVIF");
    case "jpeg":
      return judged(format, jpegFacts(bytes));
    case "png":
      return judged(format, pngFacts(bytes));
    case "webp":
      return judged(format, webpFacts(bytes));
    case "avif":
      return brandsOf(bytes).includes("avis") ? refused(moves) : { kind: "picture", format };
    default:
      return format satisfies never;
  }
}

/** Says why so many pixels are not taken; undefined: they are. */
export function pixelsFault(width: number, height: number): string | undefined {
  if (width < 1 || height < 1) return "has no pixels";
  const pixels = width * height;
  return pixels > imagePixelsMax
    ? `has ${wholeNumber(pixels)} pixels, and at most ${wholeNumber(imagePixelsMax)} are taken`
    : undefined;
}

const moves = "has several pictures, which move or are turned over";
/** CMYK and YCCK. Without a profile there is no right colour, and what a decoder turns into sRGB differs visibly from what a browser shows of the original. */
const inks = "is a JPEG of four inks (CMYK), whose colours browsers show in their own ways";
const refused = (reason: string): PictureHead => ({ kind: "refused", reason });

/** The size, where the head says it, or why the picture is not taken. */
type Facts = { readonly width: number; readonly height: number } | string;

function judged(format: PictureFormat, facts: Facts): PictureHead {
  const fault = typeof facts === "string" ? facts : pixelsFault(facts.width, facts.height);
  return fault === undefined ? { kind: "picture", format } : refused(fault);
}

/** Segments up to the end of the picture; what stands behind it is not looked at. */
function jpegFacts(bytes: Uint8Array): Facts {
  const view = viewOf(bytes);
  let size: { width: number; height: number } | undefined;
  let scans = 0;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) return "is a broken JPEG: no marker where one has to be";
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) at += 1;
    else if (marker === 0xd9) break;
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else {
      const length = view.getUint16(at + 2);
      if (length < 2) return "is a broken JPEG: a segment without a length";
      if (isFrame(marker) && at + 10 <= bytes.length) {
        if (view.getUint8(at + 9) > 3) return inks;
        size ??= { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
      }
      at += 2 + length;
      if (marker !== 0xda) continue;
      scans += 1;
      if (scans > scansMax) return `has more than ${scansMax} scans`;
      at = endOfScan(bytes, at);
    }
  }
  return size ?? "is a broken JPEG: it does not say how large it is";
}

/** SOF0 to SOF15, without DHT, JPG and DAC between them. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** Passes over entropy-coded data: in it 0xff stands before 0 or a restart marker alone. */
function endOfScan(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(0xff, from); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes[at + 1] ?? 0;
    if (next !== 0 && !(next >= 0xd0 && next <= 0xd7)) return at;
  }
  return bytes.length;
}

function pngFacts(bytes: Uint8Array): Facts {
  const view = viewOf(bytes);
  if (bytes.length < 33 || !begins(bytes, 12, "IHDR")) return "is a broken PNG: it has no head";
  // Chunks before the picture's data: one that announces an animation stands there.
  for (let at = 8; at + 8 <= bytes.length; at += 12 + view.getUint32(at)) {
    if (begins(bytes, at + 4, "acTL")) return moves;
    if (begins(bytes, at + 4, "IDAT")) break;
  }
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function webpFacts(bytes: Uint8Array): Facts {
  if (bytes.length < 30) return "is a broken WebP: it ends in its head";
  const view = viewOf(bytes);
  if (begins(bytes, 12, "VP8X")) {
    if ((view.getUint8(20) & 0x02) !== 0) return moves;
    const less = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536;
    return { width: less(24) + 1, height: less(27) + 1 };
  }
  if (begins(bytes, 12, "VP8L")) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (begins(bytes, 12, "VP8 "))
    return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  return "is a broken WebP: its first chunk is none of a picture";
}

/** The brands of a file of the ISO base media file format, the major one first; empty: it is none. */
function brandsOf(bytes: Uint8Array): readonly string[] {
  if (bytes.length < 16 || !begins(bytes, 4, "ftyp")) return [];
  const end = Math.min(viewOf(bytes).getUint32(0), bytes.length, brandsBytesMax);
  const brands = [textAt(bytes, 8)];
  for (let at = 16; at + 4 <= end; at += 4) brands.push(textAt(bytes, at));
  return brands;
}

/** Files name some five brands. */
const brandsBytesMax = 256;

const textAt = (bytes: Uint8Array, at: number): string =>
  String.fromCharCode(...bytes.subarray(at, at + 4));

function begins(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);
