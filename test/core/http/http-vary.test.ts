// Which variant a request selects.

import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import {
  isVariantFor,
  normalAcceptEncoding,
  selectingOf,
  variantOf,
  varyNamesOf,
} from "../../../src/core/http/http-vary.ts";

describe("a variant", () => {
  it("answers requests with the same values only", () => {
    const request: readonly Field[] = [["Accept-Language", "de"]];
    const matches = (fields: readonly Field[]): boolean => isVariantFor(vary, selectingOf(fields));
    const vary = variantOf(["accept-language", "x-b"], selectingOf(request));
    expect(vary).toEqual({ "accept-language": "de", "x-b": "" });
    expect(matches(request)).toBe(true);
    expect(matches([["accept-language", " de "]])).toBe(true);
    expect(matches([["Accept-Language", "en"]])).toBe(false);
    expect(matches([...request, ["X-B", "1"]])).toBe(false);
    expect(isVariantFor(variantOf([], selectingOf(request)), selectingOf([]))).toBe(true);
  });

  it.each<[string, readonly string[], readonly string[], boolean]>([
    ["accept", ["a/b,c/d"], [" a/b, c/d,, "], true],
    ["accept", ["a/b", "c/d"], ["a/b, c/d"], true],
    ["accept", ["a/b, c/d"], ["c/d, a/b"], false],
    ["x-b", ["1", "2"], [" 1, 2 "], true],
    ["x-b", ["a"], ["A"], false],
    ["x-b", ["1,2"], [" 1, 2 "], true],
    ["x-b", ["1,2"], ["1,,2"], false],
    ["x-b", ['a="1,2"'], ['a="1, 2"'], false],
    ["cookie", ["sid=a,b"], ["sid=a, b"], false],
    ["cookie", ["sid=a,b"], ["sid=a,,b"], false],
    ["cookie", ["sid=a,b"], ["sid=a,b,"], false],
    ["user-agent", ["Mozilla/5.0 (KHTML, like Gecko)"], ["Mozilla/5.0 (KHTML,like Gecko)"], false],
    ["accept-language", ["en, de"], ["De,eN"], true],
    ["accept-language", ["en;q=0.5, de"], ["de, en;q=0.50"], true],
    ["accept-language", ["en, de;q=0.5"], ["de, en;q=0.5"], false],
    ["accept-language", ["en, de;q=0"], ["en"], false],
  ])("%s: %j and %j select the same: %s", (name, one, other, isSame) => {
    const value = (values: readonly string[]): string =>
      selectingOf(values.map((said): Field => [name, said]))(name);
    expect(value(one) === value(other)).toBe(isSame);
  });

  it.each([
    ["*", undefined],
    [", *", undefined],
    ["Foo, *", undefined],
    ["Foo, bar", ["bar", "foo"]],
  ])("Vary %j names %j", (value, names) => {
    expect(varyNamesOf([["Vary", value]])).toEqual(names);
  });
});

describe("Accept-Encoding", () => {
  it.each([
    [undefined, ""],
    ["gzip, deflate, br, zstd", "br, gzip, zstd"],
    ["zstd;q=0.5, br;q=0, x-gzip", "gzip, zstd"],
    ["BR;q=0.001", "br"],
    ["identity, *", ""],
  ])("%j is %j", (value, expected) => {
    expect(normalAcceptEncoding(value)).toBe(expected);
  });

  it("is the same however often it is asked, and whatever was asked before", () => {
    const codings = ["br", "gzip", "zstd", "deflate"];
    const asked = Array.from({ length: 600 }, (_, no) => {
      const [coding = "", padding] = [codings[no % 4], "x".repeat(no % 3 === 0 ? 200 : 1)];
      return [`${padding}${no}, ${coding}`, coding === "deflate" ? "" : coding] as const;
    });
    for (let round = 0; round < 3; round++)
      for (const [value, expected] of asked) expect(normalAcceptEncoding(value)).toBe(expected);
  });
});
