// Pictures for tests: good ones of each format, and the kinds of bad ones that somebody may send.

import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";
import type { PictureFormat } from "../../src/core/images/picture-head.ts";

export type PictureWish = {
  readonly width?: number;
  readonly height?: number;
  readonly quality?: number;
};

/** Smooth surfaces with some grain, as photographs have, the same each time. */
export function photographLike(width: number, height: number, channels: 3 | 4 = 3): Uint8Array {
  const data = new Uint8Array(width * height * channels);
  let seed = 1;
  for (let at = 0; at < data.length; at += channels) {
    const point = at / channels;
    const [x, y] = [point % width, Math.floor(point / width)];
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const grain = (seed / 2_147_483_648) * 16;
    data[at] = 120 + 80 * Math.sin(x / 23) + grain;
    data[at + 1] = 100 + 70 * Math.cos((x + y) / 31) + grain;
    data[at + 2] = 90 + 60 * Math.sin(y / 17) + grain;
    if (channels === 4) data[at + 3] = x < width / 2 ? 255 : 64;
  }
  return data;
}

/** A picture that can be made much smaller. */
export async function pictureOf(
  format: PictureFormat,
  { width = 320, height = 200, quality = 95 }: PictureWish = {},
): Promise<Buffer> {
  const raw = sharp(photographLike(width, height), { raw: { width, height, channels: 3 } });
  switch (format) {
    case "jpeg":
      return raw.jpeg({ quality }).toBuffer();
    case "png":
      return raw.png({ compressionLevel: 6 }).toBuffer();
    case "webp":
      return raw.webp({ quality: 100 }).toBuffer();
    case "avif":
      return raw.avif({ quality, effort: 0 }).toBuffer();
    default:
      return format satisfies never;
  }
}

export function pngChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, "latin1");
  chunk.set(data, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length);
  return chunk;
}

export const pngSignature = Buffer.from("\u0089PNG\r\n\u001A\n", "latin1");

/** A PNG of one bit a point, all of them the same: a few kilobytes, whatever its size. */
export function flatPng(width: number, height: number, before: readonly Uint8Array[] = []): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 1;
  const rows = deflateSync(Buffer.alloc(height * (1 + Math.ceil(width / 8))));
  return Buffer.concat([
    pngSignature,
    pngChunk("IHDR", head),
    ...before,
    pngChunk("IDAT", rows),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A progressive JPEG in which the last scan stands many times more. */
export async function jpegOfScans(more: number): Promise<Buffer> {
  const width = 64;
  const one = await sharp(photographLike(width, width), {
    raw: { width, height: width, channels: 3 },
  })
    .jpeg({ progressive: true })
    .toBuffer();
  const from = one.lastIndexOf(Buffer.from([0xff, 0xda]));
  const end = one.lastIndexOf(Buffer.from([0xff, 0xd9]));
  const scan = one.subarray(from, end);
  return Buffer.concat([
    one.subarray(0, end),
    ...Array.from({ length: more }, () => scan),
    one.subarray(end),
  ]);
}

/** A lossy WebP whose head claims a size that it has not. */
export function webpClaiming(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write("RIFF", 0, "latin1");
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write("WEBPVP8X", 8, "latin1");
  bytes.writeUInt32LE(10, 16);
  bytes.writeUIntLE(width - 1, 24, 3);
  bytes.writeUIntLE(height - 1, 27, 3);
  bytes.write("VP8 ", 30, "latin1");
  return bytes;
}

export function isoBox(type: string, content: Uint8Array): Buffer {
  const box = Buffer.alloc(8 + content.length);
  box.writeUInt32BE(box.length, 0);
  box.write(type, 4, "latin1");
  box.set(content, 8);
  return box;
}

/** An AVIF whose boxes stand in each other. */
export function nestedAvif(depth: number): Buffer {
  const heads = Buffer.alloc(depth * 8);
  for (let level = 0; level < depth; level++) {
    heads.writeUInt32BE((depth - level) * 8, level * 8);
    heads.write("iprp", level * 8 + 4, "latin1");
  }
  const inner = isoBox("meta", Buffer.concat([Buffer.alloc(4), heads]));
  return Buffer.concat([isoBox("ftyp", Buffer.from("avif\0\0\0\0avifmif1miaf", "latin1")), inner]);
}
