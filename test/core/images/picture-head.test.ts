// What the bytes of a picture say of themselves: formats by their first bytes, sizes, animations, scans; and anything at all.

import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { imageSourceBytesMax, savesEnough } from "../../../src/core/images/image-limits.ts";
import {
  pictureFormat,
  pictureFormats,
  readPictureHead,
} from "../../../src/core/images/picture-head.ts";
import {
  flatPng,
  isoBox,
  jpegOfScans,
  nestedAvif,
  photographLike,
  pictureOf,
  pngChunk,
  webpClaiming,
} from "../../support/pictures.ts";

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

test.each(pictureFormats)("%s is known by its first bytes, and taken", async (format) => {
  const bytes = await pictureOf(format);
  expect(pictureFormat(bytes)).toBe(format);
  expect(readPictureHead(bytes)).toEqual({ kind: "picture", format });
});

test("lossless and simple WebP, and a PNG with a profile before its data, are taken", async () => {
  const raw = sharp(photographLike(40, 30), { raw: { width: 40, height: 30, channels: 3 } });
  for (const bytes of [
    await raw.clone().webp({ lossless: true }).toBuffer(),
    await raw.clone().webp().toBuffer(),
    await raw.clone().withIccProfile("p3").png().toBuffer(),
    await raw.clone().withIccProfile("p3").webp().toBuffer(),
  ])
    expect(readPictureHead(bytes).kind).toBe("picture");
});

describe("what is not taken, with its reason", () => {
  const animated = latin1("RIFF____WEBPVP8X\n\0\0\0\u0002\0\0\0\0\0\0\0\0\0");
  test.each<[string, Uint8Array, RegExp]>([
    ["nothing", new Uint8Array(), /no JPEG, PNG, WebP or AVIF/],
    ["a GIF that is a script", latin1("GIF89a/*\0\0*/=1;alert(1)"), /no JPEG/],
    ["an SVG named .png", latin1('<svg xmlns="http://www.w3.org/2000/svg"/>'), /no JPEG/],
    ["a PDF", latin1("%PDF-1.7"), /no JPEG/],
    ["a TIFF", latin1("II*\0\b\0\0\0"), /no JPEG/],
    ["HTML", latin1("<!doctype html>"), /no JPEG/],
    ["a HEIC", isoBox("ftyp", latin1("heic\0\0\0\0mif1heic")), /no JPEG/],
    ["an AVIF sequence", isoBox("ftyp", latin1("avis\0\0\0\0avifavismsf1")), /several pictures/],
    ["an animated WebP", Buffer.concat([animated, Buffer.alloc(20)]), /several pictures/],
    ["an APNG", flatPng(8, 8, [pngChunk("acTL", Buffer.alloc(8))]), /several pictures/],
    ["a PNG of 900 million pixels", flatPng(30_000, 30_000), /has 900,000,000 pixels/],
    ["a PNG of 26 million pixels", flatPng(6_500, 4_000), /has 26,000,000 pixels/],
    ["a PNG without pixels", flatPng(0, 10), /has no pixels/],
    ["a WebP that claims 16,384 × 16,384", webpClaiming(16_384, 16_384), /has 268,435,456 pixels/],
    ["a PNG that ends in its head", flatPng(8, 8).subarray(0, 20), /broken PNG/],
    ["a WebP that ends in its head", webpClaiming(8, 8).subarray(0, 25), /broken WebP/],
    ["a JPEG without a frame", latin1("\u00ff\u00d8\u00ff\u00d9"), /broken JPEG/],
    ["a JPEG of nonsense", latin1("\u00ff\u00d8\u00ff\u00e0\0\u0002nonsense"), /broken JPEG/],
    ["a JPEG with an empty segment", latin1("\u00ff\u00d8\u00ff\u00e0\0\0\0\0"), /broken JPEG/],
  ])("%s", (_name, bytes, reason) => {
    expect(readPictureHead(bytes)).toEqual({
      kind: "refused",
      reason: expect.stringMatching(reason),
    });
  });

  test("a JPEG of four inks, baseline or progressive; one of grey is taken", async () => {
    const raw = sharp(photographLike(40, 30), { raw: { width: 40, height: 30, channels: 3 } });
    for (const progressive of [false, true]) {
      const print = await raw.clone().toColourspace("cmyk").jpeg({ progressive }).toBuffer();
      expect(readPictureHead(print)).toEqual({
        kind: "refused",
        reason: "is a JPEG of four inks (CMYK), whose colours browsers show in their own ways",
      });
    }
    const grey = await raw.clone().toColourspace("b-w").jpeg().toBuffer();
    expect(readPictureHead(grey)).toEqual({ kind: "picture", format: "jpeg" });
  });

  test("a JPEG of thousands of scans; one of some dozens is taken", async () => {
    expect(readPictureHead(await jpegOfScans(40))).toMatchObject({ kind: "picture" });
    expect(readPictureHead(await jpegOfScans(5_000))).toEqual({
      kind: "refused",
      reason: "has more than 64 scans",
    });
  });
});

test("a JPEG's head is read as far as its frame, whatever stands before and behind it", async () => {
  const one = await pictureOf("jpeg");
  const comment = latin1("\u00ff\u00fe\0\u0012<script>alert(1)");
  const behind = Buffer.concat([
    one.subarray(0, 2),
    comment,
    one.subarray(2),
    latin1("PK\u0003\u0004"),
  ]);
  expect(readPictureHead(behind)).toEqual({ kind: "picture", format: "jpeg" });
});

test("an AVIF of boxes in boxes is left to the decoder", () => {
  expect(readPictureHead(nestedAvif(10_000))).toEqual({ kind: "picture", format: "avif" });
});

test("any bytes, and any damage of a picture, have an answer", async () => {
  const whole = await Promise.all(pictureFormats.map(async (format) => pictureOf(format)));
  fc.assert(
    fc.property(
      fc.constantFrom(...whole),
      fc.nat(),
      fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 8 }),
      (bytes, cut, changes) => {
        const damaged = Buffer.from(bytes.subarray(0, cut % (bytes.length + 1)));
        for (const [at, value] of changes) if (at < damaged.length) damaged[at] = value;
        expect(["picture", "refused"]).toContain(readPictureHead(damaged).kind);
      },
    ),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      expect(["picture", "refused"]).toContain(readPictureHead(bytes).kind);
    }),
  );
});

test("a form is kept if it saves a tenth", () => {
  expect(savesEnough(1_000, 900)).toBe(true);
  expect(savesEnough(1_000, 901)).toBe(false);
  expect(savesEnough(imageSourceBytesMax, 0)).toBe(true);
});
