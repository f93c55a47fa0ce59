// Which forms of a picture are possible, which a visitor takes, and how the words of forms are read.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { acceptedImages, likedFormats } from "../../../src/core/images/accepted-images.ts";
import {
  imageForm,
  imageFormats,
  readImageForm,
  type ImageFormat,
} from "../../../src/core/images/image-form.ts";
import {
  formatOf,
  imageChance,
  imageFromBytes,
  smallestImage,
  takenImages,
  utcDayEndMs,
} from "../../../src/core/images/image-forms.ts";
import { imageSourceBytesMax } from "../../../src/core/images/image-limits.ts";

const chrome =
  "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"; // prettier-ignore
const firefox = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";

describe("Accept", () => {
  it.each<[string | undefined, string, readonly ImageFormat[]]>([
    [chrome, "image/jpeg", ["avif", "webp"]],
    [firefox, "image/jpeg", ["avif", "webp"]],
    [firefox, "image/png", ["avif", "webp"]],
    ["image/webp,*/*", "image/jpeg", ["webp"]],
    ["IMAGE/WebP ; Q=0.9 , image/avif;q=0.8", "image/jpeg", ["webp", "avif"]],
    // No word for either.
    [undefined, "image/jpeg", []],
    ["", "image/jpeg", []],
    ["*/*", "image/jpeg", []],
    ["image/*", "image/jpeg", []],
    ["image/png,image/*;q=0.8,*/*;q=0.5", "image/jpeg", []],
    ["text/html,application/xhtml+xml", "image/jpeg", []],
    // Refused, in any order.
    ["image/avif;q=0, image/webp", "image/jpeg", ["webp"]],
    ["image/avif, image/avif;q=0.000", "image/jpeg", []],
    ["image/avif;q=0, image/avif", "image/jpeg", []],
    ["image/avif;q=2, image/webp;q=x", "image/jpeg", []],
    // The original is liked more.
    ["image/jpeg, image/webp;q=0.5", "image/jpeg", []],
    ["image/*, image/webp;q=0.5", "image/jpeg", []],
    ["*/*, image/webp;q=0.5", "image/jpeg", []],
    ["image/jpeg;q=0.5, image/webp;q=0.5, */*", "image/jpeg", ["webp"]],
    ["image/png, image/webp;q=0.5", "image/jpeg", ["webp"]],
    // What is quoted is no word of the list.
    ['text/html;x=", image/avif, "', "image/jpeg", []],
    ['text/html;x="\\", image/avif, ", image/webp', "image/jpeg", ["webp"]],
    ['image/avif;x=";q=0", image/webp;x=","', "image/jpeg", ["avif", "webp"]],
    ['image/avif;x=",";q=0, image/webp', "image/jpeg", ["webp"]],
    [";image/avif, ;q=1", "image/jpeg", []],
    // Parameters of the type mean nothing here, and neither do other types.
    ["image/webp;level=1;q=0.7, video/webp, image/webp2, x/image/webp", "image/jpeg", ["webp"]],
  ])("%j of a %s: %j", (accept, original, formats) => {
    expect(likedFormats(acceptedImages(accept), imageFormats, original)).toEqual(formats);
  });

  it("never yields what is not named, or refused, whatever is sent", () => {
    const type = fc.constantFrom("image/avif", "image/webp", "image/*", "*/*", "image/jpeg");
    const weight = fc.constantFrom("", ";q=0", ";q=0.5", ";q=1", ";q=x");
    fc.assert(
      fc.property(fc.array(fc.tuple(type, weight)), (members) => {
        const accept = members.map((member) => member.join("")).join(", ");
        for (const format of likedFormats(acceptedImages(accept), imageFormats, "image/jpeg")) {
          const said = members.filter(([name]) => name === `image/${format}`);
          expect(said.length).toBeGreaterThan(0);
          expect(said.every(([, q]) => q !== ";q=0" && q !== ";q=x")).toBe(true);
        }
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => void acceptedImages(text)));
  });
});

describe("what is optimized", () => {
  const wishes = { optimize: true, formats: imageFormats };
  const none = { set: {}, remove: [] };
  const picture = { status: 200, headers: [], mime: "image/jpeg", size: 50_000 };
  const chance = (
    changes: Partial<Parameters<typeof imageChance>[2]>,
    edits: Parameters<typeof imageChance>[1] = none,
  ): unknown => {
    const found = imageChance(wishes, edits, { ...picture, ...changes });
    return found.kind === "none" ? found.because : found.formats;
  };

  it.each<[Partial<Parameters<typeof imageChance>[2]>, readonly string[] | RegExp]>([
    [{}, ["avif", "webp"]],
    [{ mime: "image/png" }, ["avif", "webp"]],
    [{ mime: "image/webp" }, ["avif"]],
    [{ mime: "image/avif" }, []],
    [{ mime: "image/gif" }, /media type/],
    [{ mime: "image/svg+xml" }, /media type/],
    [{ mime: "image/jpg" }, /media type/],
    [{ mime: "text/html" }, /media type/],
    [{ mime: "" }, /media type/],
    [{ status: 404 }, /status/],
    [{ status: 206 }, /status/],
    [{ size: imageFromBytes }, ["avif", "webp"]],
    [{ size: imageFromBytes - 1 }, /smaller/],
    [{ size: imageSourceBytesMax }, ["avif", "webp"]],
    [{ size: imageSourceBytesMax + 1 }, /larger/],
    [{ size: undefined }, ["avif", "webp"]],
    [{ headers: [["Content-Encoding", "gzip"]] }, /Content-Encoding/],
    [{ headers: [["content-range", "bytes 0-1/2"]] }, /Content-Range/],
    [{ headers: [["Cache-Control", "public, No-Transform"]] }, /no-transform/],
    [{ headers: [["Cache-Control", "public, max-age=5"]] }, ["avif", "webp"]],
    [{ headers: [["Vary", "Accept-Encoding, accept"]] }, /varies by Accept/],
    [{ headers: [["Vary", "*"]] }, /varies by Accept/],
    [{ headers: [["Vary", "Accept-Encoding, Cookie"]] }, ["avif", "webp"]],
  ])("%j: %s", (changes, expected) => {
    if (expected instanceof RegExp) expect(chance(changes)).toMatch(expected);
    else expect(chance(changes)).toEqual(expected);
  });

  it.each<[Parameters<typeof imageChance>[1], boolean]>([
    [{ set: { "X-A": "b" }, remove: ["Server"] }, true],
    [{ set: { "Cache-Control": "max-age=5" }, remove: [] }, true],
    [{ set: { Vary: "Cookie" }, remove: ["ETag"] }, true],
    [{ set: { "cache-control": "no-transform" }, remove: [] }, false],
    [{ set: { "Content-TYPE": "image/png" }, remove: [] }, false],
    [{ set: {}, remove: ["content-type"] }, false],
    [{ set: { etag: '"x"' }, remove: [] }, false],
  ])("under %j: %j", (edits, isOptimized) => {
    if (isOptimized) expect(chance({}, edits)).toEqual(["avif", "webp"]);
    else expect(chance({}, edits)).toMatch(/^headers of the site/);
  });

  it("is what the site wants, and nothing where it wants none", () => {
    const formats = ["webp"] as const;
    expect(imageChance({ optimize: true, formats }, none, picture)).toEqual({ kind: "formats", formats }); // prettier-ignore
    const isOff = { kind: "none", because: "images.optimize is off" };
    expect(imageChance({ optimize: false, formats }, none, picture)).toEqual(isOff);
  });
});

it.each([
  [undefined, "image/jpeg", ["avif", "webp"]],
  [640, "image/jpeg", ["avif-640", "webp-640", "same-640"]],
] as const)("forms of width %s of a %s: %j", (width, mime, forms) => {
  const taken = takenImages(acceptedImages(chrome), { formats: imageFormats, mime, width });
  expect(taken).toEqual(forms.map((form) => ({ form, weight: 1 })));
});

it("a narrower picture is for everybody, another format for those who name it", () => {
  const asked = { formats: imageFormats, mime: "image/jpeg" };
  const taken = (accept: string, width: number | undefined): unknown =>
    takenImages(acceptedImages(accept), { ...asked, width });
  expect(taken("*/*", 320)).toEqual([{ form: "same-320", weight: 1 }]);
  expect(taken("text/html", 320)).toEqual([{ form: "same-320", weight: 0 }]);
  expect(taken("*/*", undefined)).toEqual([]);
});

describe("which form is sent, and which are made", () => {
  type Row = readonly [accept: string, mime: string, width: number | undefined, there: Readonly<Record<string, number>>, sent: string | undefined, wanted: readonly string[]]; // prettier-ignore
  it.each<Row>([
    [chrome, "image/jpeg", undefined, {}, undefined, ["avif", "webp"]],
    // Of a photograph one form is made, and the smaller is sent where both are there.
    [chrome, "image/jpeg", undefined, { avif: 50 }, "avif", []],
    [chrome, "image/jpeg", undefined, { webp: 50 }, "webp", ["avif"]],
    [chrome, "image/jpeg", undefined, { avif: 50, webp: 49 }, "webp", []],
    [chrome, "image/jpeg", undefined, { avif: 50, webp: 50 }, "avif", []],
    [chrome, "image/jpeg", undefined, { avif: 50, webp: 51 }, "avif", []],
    // Of a PNG both are made.
    [chrome, "image/png", undefined, {}, undefined, ["avif", "webp"]],
    [chrome, "image/png", undefined, { avif: 50 }, "avif", ["webp"]],
    [chrome, "image/png", undefined, { webp: 50 }, "webp", ["avif"]],
    [chrome, "image/png", undefined, { avif: 50, webp: 40 }, "webp", []],
    ["image/avif", "image/png", undefined, { avif: 50, webp: 40 }, "avif", []],
    // A weight says more than a size.
    ["image/avif, image/webp;q=0.9", "image/png", undefined, { avif: 50, webp: 40 }, "avif", []],
    ["image/avif, image/webp;q=0.9", "image/png", undefined, { avif: 50 }, "avif", []],
    ["image/avif, image/webp;q=0.9", "image/png", undefined, { webp: 40 }, "webp", ["avif"]],
    ["image/avif;q=0.8, image/webp;q=0.9", "image/jpeg", undefined, { avif: 9, webp: 40 }, "webp", []],
    // Of a width, only its own forms; the original's format is not made for the comparison.
    [chrome, "image/png", 640, { avif: 5, "webp-640": 40 }, "webp-640", ["avif-640"]],
    [chrome, "image/png", 640, { "avif-640": 50 }, "avif-640", ["webp-640"]],
    [chrome, "image/png", 640, { "avif-640": 50, "webp-640": 40, "same-640": 30 }, "same-640", []],
    [firefox, "image/jpeg", 640, { "avif-640": 50, "same-640": 30 }, "avif-640", []],
    [firefox, "image/png", 640, { "avif-640": 50, "same-640": 30 }, "same-640", ["webp-640"]],
    [chrome, "image/jpeg", 640, { "same-640": 30 }, "same-640", ["avif-640", "webp-640"]],
    ["*/*", "image/jpeg", 640, { "avif-640": 10 }, undefined, ["same-640"]],
    ["*/*", "image/jpeg", undefined, { avif: 10 }, undefined, []],
  ])("%j of a %s at %s, where there are %j: %s, and %j", (accept, mime, width, there, sent, wanted) => {
    const taken = takenImages(acceptedImages(accept), { formats: imageFormats, mime, width });
    expect(smallestImage(taken, mime, (form) => there[form])).toEqual({ sent, wanted });
  }); // prettier-ignore
});

it("a word says what it was made of, and other words say nothing", () => {
  const format = fc.constantFrom("avif" as const, "webp" as const, "same" as const);
  const width = fc.option(fc.integer({ min: 1, max: 99_999 }), { nil: undefined });
  fc.assert(
    fc.property(fc.record({ format, width }), (wish) => {
      const word = imageForm(wish);
      if (word === undefined) expect(wish).toEqual({ format: "same", width: undefined });
      else {
        expect(readImageForm(word)).toEqual(wish);
        expect(formatOf(word)).toBe(wish.format);
      }
    }),
  );
  for (const word of ["", "br", "same", "avif-", "avif-0", "avif-012", "avif-100000", "AVIF", "avif-640 "])
    expect(readImageForm(word)).toBeUndefined(); // prettier-ignore
});

it("a day ends at midnight UTC, and midnight is of the day that begins", () => {
  const midnight = Date.UTC(2031, 0, 2);
  expect(utcDayEndMs(midnight - 1)).toBe(midnight);
  expect(utcDayEndMs(midnight)).toBe(Date.UTC(2031, 0, 3));
});
