// Hostile characters in names: each shows, and nothing else changes.

import fc from "fast-check";
import { expect, test } from "vitest";
import { visibleLines, visibleText } from "../../src/console/visible-text.ts";

test.each([
  ["Googlebot/2.1 (+http://www.google.com/bot.html)", undefined],
  ["日本語 עברית Ünïcode", undefined],
  ["❤️ 👍🏽", undefined],
  ["invoice\u202Egnp.exe", "invoice‹U+202E›gnp.exe"],
  ["\u2066a\u2069\u200F\u061C", "‹U+2066›a‹U+2069›‹U+200F›‹U+061C›"],
  ["a\u0000b\u001B[31m\u007F\u0085", "a‹U+0000›b‹U+001B›[31m‹U+007F›‹U+0085›"],
  ["two\nlines\tand\u2028more", "two‹U+000A›lines‹U+0009›and‹U+2028›more"],
  ["pay\u200Bpal\u00AD\uFEFF", "pay‹U+200B›pal‹U+00AD›‹U+FEFF›"],
  ["\u3164", "‹U+3164›"],
  ["\u{E0041}", "‹U+E0041›"],
  ["half \uD83D of it", "half ‹U+D83D› of it"],
  ["", undefined],
])("%j", (text, shown) => {
  expect(visibleText(text)).toBe(shown ?? text);
});

const hostile = /[\p{Cc}\p{Bidi_C}\p{Zl}\p{Zp}\p{Cs}]/u;

test("nothing that hides or rearranges is left of any text, and what was shown once stays as it is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const shown = visibleText(text);
      expect(shown).not.toMatch(hostile);
      expect(visibleText(shown)).toBe(shown);
    }),
  );
});

test("the ends of lines stay where there are lines", () => {
  expect(visibleLines("{\n  \u202E\n}\r")).toBe("{\n  ‹U+202E›\n}‹U+000D›");
});
