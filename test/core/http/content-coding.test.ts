// Which codings a visitor takes, what they are made for, and what they change of a head.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codedFields } from "../../../src/core/http/coded-fields.ts";
import {
  acceptedCodings,
  codedToBytes,
  codings,
  isCodable,
  isTextual,
  mimeOf,
} from "../../../src/core/http/content-coding.ts";
import { formTag, namedForm } from "../../../src/core/http/form-tag.ts";
import { varyingBy } from "../../../src/core/http/http-vary.ts";

describe("Accept-Encoding", () => {
  it.each([
    [undefined, []],
    ["", []],
    ["identity", []],
    ["gzip, deflate, br, zstd", ["br", "zstd", "gzip"]],
    ["gzip", ["gzip"]],
    ["x-gzip", ["gzip"]],
    ["GZIP;Q=0.5 , Br", ["br", "gzip"]],
    ["gzip;q=1.0, br;q=0.9", ["gzip", "br"]],
    ["br;q=0, gzip", ["gzip"]],
    ["br;q=0.000, *", ["zstd", "gzip"]],
    ["*", ["br", "zstd", "gzip"]],
    ["*;q=0", []],
    ["gzip, *;q=0", ["gzip"]],
    ["zstd;q=0.3, *;q=0.4", ["br", "gzip", "zstd"]],
    // Identity at the same weight is no objection, at a higher one it is.
    ["gzip, identity", ["gzip"]],
    ["gzip;q=0.5, identity", []],
    ["gzip;q=0.5, br, identity;q=0.7", ["br"]],
    ["identity;q=0, gzip;q=0.1", ["gzip"]],
    // Nonsense takes nothing.
    ["gzip;q=2, br;q=-1, zstd;q=0.1234", []],
    ["gzip;q=0.5;q=1", ["gzip"]],
    ["gzip, gzip;q=0", []],
    [",, ;, gzip;x=1 ,", ["gzip"]],
  ])("%j: %j", (said, accepted) => {
    expect(acceptedCodings(said)).toEqual(accepted);
  });

  it("never yields what is refused or not said, each once, whatever is sent", () => {
    const name = fc.constantFrom("br", "zstd", "gzip", "identity", "*", "deflate");
    const weight = fc.constantFrom("", ";q=0", ";q=0.5", ";q=1", ";q=x");
    fc.assert(
      fc.property(fc.array(fc.tuple(name, weight)), (members) => {
        const accepted = acceptedCodings(members.map((member) => member.join("")).join(","));
        expect(new Set(accepted).size).toBe(accepted.length);
        for (const coding of accepted) {
          const said = members.filter(([member]) => member === coding);
          expect(said.every(([, q]) => q !== ";q=0" && q !== ";q=x")).toBe(true);
          expect(said.length > 0 || members.some(([member]) => member === "*")).toBe(true);
        }
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => void acceptedCodings(text)));
  });
});

describe("what is coded", () => {
  it.each([
    ["text/html", true],
    ["text/x-anything", true],
    ["application/json", true],
    ["application/ld+json", true],
    ["application/rss+xml", true],
    ["application/manifest+json", true],
    ["text/javascript", true],
    ["application/wasm", true],
    ["image/svg+xml", true],
    ["font/ttf", true],
    ["application/vnd.ms-fontobject", true],
    ["font/woff2", false],
    ["image/png", false],
    ["video/mp4", false],
    ["application/zip", false],
    ["application/octet-stream", false],
    ["text/event-stream", false],
    ["", false],
  ])("%s: %j", (mime, expected) => {
    expect(isTextual(mime)).toBe(expected);
  });

  const page = { status: 200, fields: [], mime: "text/html", size: 5_000 };
  it.each([
    [{}, true],
    [{ size: 1_024 }, true],
    [{ size: 1_023 }, false],
    [{ size: codedToBytes }, true],
    [{ size: codedToBytes + 1 }, false],
    [{ status: 404 }, false],
    [{ status: 206 }, false],
    [{ mime: "image/webp" }, false],
    [{ fields: [["content-encoding", "gzip"]] }, false],
    [{ fields: [["Cache-Control", "public, No-Transform"]] }, false],
    [
      {
        fields: [
          ["Cache-Control", "public"],
          ["cache-control", "no-transform"],
        ],
      },
      false,
    ],
    [{ fields: [["Content-Range", "bytes 0-1/2"]] }, false],
  ] as const)("%j: %j", (changes, expected) => {
    expect(isCodable({ ...page, ...changes })).toBe(expected);
  });

  it("is told by the type without its parameters", () => {
    expect(mimeOf("Text/HTML ; charset=utf-8")).toBe("text/html");
    expect(mimeOf(undefined)).toBe("");
  });
});

describe("the head of a variant", () => {
  it("has a tag of its own where the tag is strong", () => {
    expect(codings.map((coding) => formTag('"a"', coding))).toEqual([
      '"a-br"',
      '"a-zstd"',
      '"a-gzip"',
    ]);
    expect(formTag('"a"', null)).toBe('"a"');
    expect(formTag('W/"a"', "br")).toBe('W/"a"');
    expect(formTag("a", "br")).toBe("a");
  });

  it("has a weak tag of its own where it is another picture", () => {
    expect(formTag('W/"a"', "avif")).toBe('W/"a-avif"');
    expect(formTag('W/"a"', "same-640")).toBe('W/"a-same-640"');
    expect(formTag('W/"a"', null)).toBe('W/"a"');
  });

  it("says its coding, and nothing of the bytes that it does not have", () => {
    const fields = [
      ["Content-Type", "text/css"],
      ["ETag", '"a"'],
      ["Content-MD5", "x"],
      ["Repr-Digest", "x"],
      ["content-digest", "x"],
      ["Digest", "x"],
      ["Accept-Ranges", "bytes"],
      ["X-Kept", "1"],
    ] as const;
    expect(codedFields(fields, "zstd")).toEqual([
      ["Content-Type", "text/css"],
      ["ETag", '"a-zstd"'],
      ["X-Kept", "1"],
      ["Content-Encoding", "zstd"],
    ]);
    expect(codedFields(fields, null)).toEqual(fields);
  });

  it("varies once", () => {
    expect(varyingBy([], "Accept-Encoding")).toEqual([["Vary", "Accept-Encoding"]]);
    for (const vary of ["accept-encoding", "Cookie, Accept-Encoding", "*"])
      expect(varyingBy([["vary", vary]], "Accept-Encoding")).toEqual([["vary", vary]]);
    expect(varyingBy([["Vary", "Cookie"]], "Accept-Encoding").at(-1)).toEqual([
      "Vary",
      "Accept-Encoding",
    ]);
  });

  it.each([
    ["if-none-match", '"a"', "br", null],
    ["if-none-match", '"a-br"', "br", "br"],
    ["if-none-match", '"a-gzip"', "br", "gzip"],
    ["if-none-match", 'W/"a-gzip"', "br", "gzip"],
    // Of several that it names: the one that would be sent, else the best.
    ["if-none-match", '"a", "a-gzip", "a-br"', "br", "br"],
    ["if-none-match", '"a", "a-gzip", "a-zstd"', "br", "zstd"],
    ["if-match", '"a-zstd"', null, "zstd"],
    ["if-none-match", '"b-gzip"', "br", "br"],
    ["if-none-match", "*", "br", "br"],
    ["if-modified-since", "x", "br", "br"],
  ] as const)("%s: %s speaks, where %j would be sent, of %j", (name, value, chosen, named) => {
    const request = [[name, value]] as const;
    expect(namedForm(request, '"a"', chosen, () => codings)).toBe(named);
  });

  it.each([
    ["if-none-match", 'W/"a-avif"', "avif", "avif"],
    ["if-none-match", 'W/"a-webp"', "avif", "webp"],
    ["if-none-match", '"a-avif"', "avif", "avif"],
    ["if-none-match", 'W/"a"', "avif", null],
    ["if-none-match", 'W/"b-avif"', "webp", "webp"],
  ] as const)(
    "%s: %s speaks, under a weak tag, of the picture %j: %j",
    (name, value, chosen, named) => {
      const request = [[name, value]] as const;
      expect(namedForm<string>(request, 'W/"a"', chosen, () => ["avif", "webp"])).toBe(named);
    },
  );

  it("is not spoken of by a tag whose coding the visitor does not take now", () => {
    const request = [["if-none-match", '"a-br"']] as const;
    expect(namedForm(request, '"a"', null, () => [])).toBe(null);
    expect(namedForm(request, '"a"', "gzip", () => ["gzip"])).toBe("gzip");
    expect(namedForm(request, undefined, null, () => ["br"])).toBe(null);
  });
});
