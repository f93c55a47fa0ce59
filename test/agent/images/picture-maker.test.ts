// What the encoder makes of pictures and of what only looks like one, by the library itself.

import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import type { EncodeOutcome } from "../../../src/agent/images/encoder-messages.ts";
import { PictureEncoder } from "../../../src/agent/images/picture-encoder.ts";
import { makePicture, restrictLibrary } from "../../../src/agent/images/picture-maker.ts";
import type { ImageForm } from "../../../src/core/images/image-form.ts";
import { pictureFormat, pictureFormats } from "../../../src/core/images/picture-head.ts";
import {
  flatPng,
  jpegOfScans,
  nestedAvif,
  photographLike,
  pictureOf,
  pngChunk,
  webpClaiming,
} from "../../support/pictures.ts";

beforeAll(() => restrictLibrary(sharp));

const make = async (source: Uint8Array, form: ImageForm, quality = 80): Promise<EncodeOutcome> =>
  makePicture(sharp, { kind: "encode", source, form, quality });

/** Fails where nothing was made. */
async function bodyOf(source: Uint8Array, form: ImageForm, quality = 80): Promise<Uint8Array> {
  const outcome = await make(source, form, quality);
  if (outcome.kind !== "made") throw new Error(JSON.stringify(outcome));
  return outcome.body;
}

const raw = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp(photographLike(width, height, channels), { raw: { width, height, channels } });
const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

describe("forms", () => {
  test.each(
    pictureFormats.flatMap((from) =>
      (["avif", "webp", "same"] as const).map((to) => [from, to] as const),
    ),
  )("%s to %s at another width", async (from, to) => {
    const source = await pictureOf(from);
    const body = await bodyOf(source, `${to}-160`);
    const made = to === "same" ? from : to;
    expect(pictureFormat(body)).toBe(made);
    expect(body.length).toBeLessThan(source.length * 0.9);
    expect(await sharp(body).metadata()).toMatchObject({ width: 160, height: 100 });
  });

  test.each(["jpeg", "png"] as const)("%s as wide as it is", async (from) => {
    for (const to of ["avif", "webp"] as const) {
      const body = await bodyOf(await pictureOf(from), to);
      expect(await sharp(body).metadata()).toMatchObject({ width: 320, height: 200 });
    }
  });

  test("nothing is widened: a wider form is one in another format, or not worth it", async () => {
    const source = await pictureOf("jpeg");
    expect(await sharp(await bodyOf(source, "webp-640")).metadata()).toMatchObject({ width: 320 });
    expect(await make(source, "same-640")).toEqual({ kind: "worthless" });
    expect(await make(source, "same-320")).toEqual({ kind: "worthless" });
  });

  test("what saves less than a tenth is not worth it", async () => {
    const small = await raw(320, 200).webp({ quality: 20 }).toBuffer();
    expect(await make(small, "webp")).toEqual({ kind: "worthless" });
    expect(await make(small, "webp", 100)).toEqual({ kind: "worthless" });
  });

  test("quality is heeded by each format", async () => {
    const source = await pictureOf("jpeg");
    for (const form of ["avif", "webp", "same-200"] as const) {
      const [low, high] = [await bodyOf(source, form, 30), await bodyOf(source, form, 80)];
      expect(low.length).toBeLessThan(high.length);
    }
  });
});

describe("what stands in a picture beside its pixels", () => {
  test("where it was taken, by whom, and every comment stay behind", async () => {
    const exif = {
      IFD0: { Copyright: "Somebody", ImageDescription: "secret-of-exif" },
      IFD3: { GPSLatitude: "51/1 30/1 0/1", GPSLatitudeRef: "N" },
    };
    const source = await raw(320, 200)
      .withExif(exif)
      .withXmp("<x:xmpmeta xmlns:x='adobe:ns:meta/'>secret-of-xmp</x:xmpmeta>")
      .jpeg({ quality: 95 })
      .toBuffer();
    expect(source.includes("secret-of-exif")).toBe(true);
    expect(source.includes("secret-of-xmp")).toBe(true);
    for (const form of ["avif", "webp", "same-160", "avif-160"] as const) {
      const body = Buffer.from(await bodyOf(source, form));
      expect(body.includes("secret-of")).toBe(false);
      const { exif: exifThere, xmp, icc } = await sharp(body).metadata();
      expect({ exifThere, xmp, icc }).toEqual({});
    }
  });

  test("a picture that lies on its side is turned upright, and its width is that of the upright one", async () => {
    const source = await raw(320, 200).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    for (const form of ["avif", "webp"] as const) {
      const facts = await sharp(await bodyOf(source, form)).metadata();
      expect(facts).toMatchObject({ width: 200, height: 320 });
      expect(facts.orientation ?? 1).toBe(1);
    }
    expect(await sharp(await bodyOf(source, "same-100")).metadata()).toMatchObject({
      width: 100,
      height: 160,
    });
    expect(await make(source, "same-250")).toEqual({ kind: "worthless" });
  });

  test("a PNG is turned as a JPEG is, and a WebP is not: so browsers show the originals", async () => {
    const lying = raw(320, 200).withMetadata({ orientation: 6 });
    const png = await lying.clone().png().toBuffer();
    expect(await sharp(await bodyOf(png, "avif-100")).metadata()).toMatchObject({
      width: 100,
      height: 160,
    });
    const webp = await lying.clone().webp({ quality: 100 }).toBuffer();
    expect((await sharp(webp).metadata()).orientation).toBe(6);
    const sizes = {
      avif: [320, 200],
      "avif-250": [250, 156],
      "same-250": [250, 156],
      "webp-250": [250, 156],
    } as const;
    for (const form of ["avif", "avif-250", "same-250", "webp-250"] as const) {
      const { width, height, orientation = 1 } = await sharp(await bodyOf(webp, form)).metadata();
      expect([width, height, orientation]).toEqual([...sizes[form], 1]);
    }
  });

  test("colours of a wide profile are those of sRGB afterwards", async () => {
    const red = { width: 64, height: 64, channels: 3 as const, background: "#e01020" };
    const plain = await sharp({ create: red }).png().toBuffer();
    const wide = await sharp(plain).withIccProfile("p3").png({ compressionLevel: 0 }).toBuffer();
    const [r, g, b] = await sharp(await bodyOf(wide, "webp", 95))
      .raw()
      .toBuffer();
    expect(r).toBeGreaterThan(214);
    expect(g).toBeLessThan(32);
    expect(b).toBeLessThan(48);
  });

  test("what can be seen through stays so", async () => {
    const source = await raw(320, 200, 4).png().toBuffer();
    for (const form of ["avif", "webp", "same-160"] as const) {
      const body = await bodyOf(source, form);
      expect((await sharp(body).metadata()).hasAlpha).toBe(true);
      const { data, info } = await sharp(body).raw().toBuffer({ resolveWithObject: true });
      expect(data[3]).toBe(255);
      expect(data[info.width * 4 - 1]).toBe(64);
    }
  });

  test("16 bits and shades of grey are taken, and sent as browsers know them", async () => {
    const deep = await raw(320, 200).toColourspace("rgb16").png().toBuffer();
    const grey = await raw(320, 200).toColourspace("b-w").png().toBuffer();
    for (const source of [deep, grey])
      for (const form of ["avif", "webp", "same-160"] as const) {
        const facts = await sharp(await bodyOf(source, form)).metadata();
        expect(facts.depth).toBe("uchar");
        expect(["srgb", "b-w"]).toContain(facts.space);
      }
  });
});

test("four inks are left to the browser, whose colours they are", async () => {
  const print = await raw(320, 200).toColourspace("cmyk").jpeg({ quality: 95 }).toBuffer();
  expect((await sharp(print).metadata()).space).toBe("cmyk");
  for (const form of ["avif", "webp", "same-160"] as const)
    expect(await make(print, form)).toMatchObject({
      kind: "unreadable",
      reason: expect.stringContaining("four inks"),
    });
});

describe("what only looks like a picture", () => {
  const zip = latin1("PK\u0003\u0004 a file that is a ZIP as well");
  const script = latin1("<script>alert(1)</script>");

  test("a picture and something else become a picture alone", async () => {
    const jpeg = await pictureOf("jpeg");
    const comment = Buffer.concat([
      latin1("\u00ff\u00fe"),
      Buffer.from([0, script.length + 2]),
      script,
    ]);
    const png = await pictureOf("png");
    const polyglots = [
      Buffer.concat([jpeg, zip]),
      Buffer.concat([jpeg.subarray(0, 2), comment, jpeg.subarray(2)]),
      Buffer.concat([png, script]),
      Buffer.concat([
        png.subarray(0, 33),
        pngChunk("tEXt", Buffer.concat([latin1("a\0"), script])),
        png.subarray(33),
      ]),
    ];
    for (const source of polyglots)
      for (const form of ["avif", "webp", "same-160"] as const) {
        const body = Buffer.from(await bodyOf(source, form));
        expect(body.includes("PK\u0003\u0004")).toBe(false);
        expect(body.includes("<script")).toBe(false);
      }
  });

  test("other formats are refused, whatever their name", async () => {
    const gif = await raw(8, 8).gif().toBuffer();
    const tiff = await raw(8, 8).tiff().toBuffer();
    const svg = latin1('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    for (const source of [gif, tiff, svg, zip, script, latin1("%PDF-1.7"), new Uint8Array()])
      expect(await make(source, "webp")).toEqual({
        kind: "unreadable",
        reason: "is no JPEG, PNG, WebP or AVIF",
      });
  });

  test("the decoders of other formats are blocked in the library itself", async () => {
    const svg = latin1('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    await expect(sharp(svg).png().toBuffer()).rejects.toThrow(/unsupported|blocked/i);
  });

  test("a head of one format before a body of another one is refused", async () => {
    const png = await pictureOf("png");
    const jpegHead = (await pictureOf("jpeg")).subarray(0, 400);
    for (const source of [
      Buffer.concat([jpegHead, png]),
      Buffer.concat([png.subarray(0, 33), await pictureOf("jpeg")]),
      Buffer.concat([webpClaiming(8, 8), png]),
    ])
      expect(await make(source, "webp")).toMatchObject({ kind: "unreadable" });
  });
});

describe("bombs and broken pictures", () => {
  test.each<[string, () => Uint8Array | Promise<Uint8Array>]>([
    ["a PNG of 30,000 × 30,000", () => flatPng(30_000, 30_000)],
    ["a PNG of 26 megapixels", () => flatPng(6_500, 4_000)],
    ["a WebP that claims 16,384 × 16,384", () => webpClaiming(16_384, 16_384)],
    ["a WebP that claims little and has nothing", () => webpClaiming(16, 16)],
    ["a JPEG of thousands of scans", async () => jpegOfScans(5_000)],
    ["an AVIF of ten thousand boxes in each other", () => nestedAvif(10_000)],
    ["nothing", () => new Uint8Array()],
    ["an APNG", () => flatPng(8, 8, [pngChunk("acTL", Buffer.alloc(8))])],
    [
      "an animated WebP",
      async () => {
        const frames = [1, 2].map((shade) => Buffer.alloc(32 * 32 * 3, shade * 90));
        const page = { width: 32, height: 64, channels: 3 as const, pageHeight: 32 };
        return sharp(Buffer.concat(frames), { raw: page }).webp({ loop: 0 }).toBuffer();
      },
    ],
  ])("%s", async (_name, source) => {
    const outcome = await make(await source(), "webp");
    expect(outcome).toMatchObject({ kind: "unreadable", reason: expect.stringMatching(/\S/) });
  });

  test.each(pictureFormats)("%s that ends in the middle", async (format) => {
    const whole = await pictureOf(format);
    for (const share of [0.1, 0.5, 0.9])
      expect(
        await make(whole.subarray(0, Math.floor(whole.length * share)), "webp-100"),
      ).toMatchObject({ kind: "unreadable" });
  });

  test.each(pictureFormats)("%s with noise in its middle has an answer", async (format) => {
    const broken = Buffer.from(await pictureOf(format));
    for (let at = 0; at < 64; at++) broken[Math.floor(broken.length / 2) + at] = (at * 73) % 256;
    expect(["made", "worthless", "unreadable"]).toContain((await make(broken, "avif-100")).kind);
  });

  test("a picture of exactly 25 megapixels is taken", async () => {
    expect(await make(flatPng(5_000, 5_000), "same-100")).toMatchObject({ kind: "made" });
  });
});

describe("without the library", () => {
  const missing = async (): Promise<never> => {
    throw new Error("Cannot find package 'sharp' imported from /opt/picturer.js");
  };

  test("every question is answered with what is missing", async () => {
    const encoder = new PictureEncoder(missing, () => 0);
    const source = await pictureOf("jpeg");
    const absent = { kind: "absent", reason: "sharp is not installed" };
    expect(await encoder.answer({ kind: "open" })).toEqual(absent);
    expect(await encoder.answer({ kind: "encode", source, form: "webp", quality: 80 })).toEqual(
      absent,
    );
  });

  test("one that does not run here is told in the first line of its own words", async () => {
    const broken = async (): Promise<never> => {
      throw new Error('Could not load the "sharp" module using the linux-x64 runtime\nadvice');
    };
    expect(await new PictureEncoder(broken, () => 0).answer({ kind: "open" })).toEqual({
      kind: "absent",
      reason:
        'sharp cannot be loaded: Could not load the "sharp" module using the linux-x64 runtime',
    });
  });
});

test("with the library, versions are told, and the processor time of a picture", async () => {
  let cpuMs = 0;
  const encoder = new PictureEncoder(
    async () => sharp,
    () => (cpuMs += 5),
  );
  expect(await encoder.answer({ kind: "open" })).toMatchObject({
    kind: "opened",
    versions: { sharp: sharp.versions.sharp, vips: sharp.versions.vips },
  });
  const source = await pictureOf("jpeg");
  expect(await encoder.answer({ kind: "encode", source, form: "webp", quality: 80 })).toMatchObject(
    { kind: "encoded", outcome: { kind: "made" }, cpuMs: 5 },
  );
});
