// A WebP without its EXIF is the same picture, and whatever is no such WebP stays as it is.

import fc from "fast-check";
import sharp from "sharp";
import { expect, test } from "vitest";
import { webpWithoutExif } from "../../../src/agent/images/webp-exif.ts";
import { photographLike, pictureOf } from "../../support/pictures.ts";

const raw = sharp(photographLike(40, 30), { raw: { width: 40, height: 30, channels: 3 } });

test("the orientation is gone, the pixels stay, and the bytes given are left alone", async () => {
  const lying = await raw.clone().withMetadata({ orientation: 6 }).webp().toBuffer();
  const given = Buffer.from(lying);
  const bare = webpWithoutExif(lying);
  expect(lying).toEqual(given);
  expect((await sharp(lying).metadata()).orientation).toBe(6);
  const { orientation, exif, width, height } = await sharp(bare).metadata();
  expect({ orientation, exif, width, height }).toEqual({ width: 40, height: 30 });
  expect(await sharp(bare).raw().toBuffer()).toEqual(await sharp(lying).raw().toBuffer());
});

test("a WebP without EXIF, simple or with a profile, is the one given", async () => {
  const profiled = await raw.clone().withIccProfile("p3").webp().toBuffer();
  for (const one of [await pictureOf("webp"), profiled]) expect(webpWithoutExif(one)).toBe(one);
});

test("any bytes have an answer of their own length", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      expect(webpWithoutExif(bytes).length).toBe(bytes.length);
    }),
  );
});
