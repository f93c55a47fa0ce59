// The tags of a response: which fields, what separates them, and what is too much.

import { expect, test } from "vitest";
import { cacheTagFields, cacheTagsOf } from "../../../src/core/http/cache-tags.ts";
import { exactWord } from "../../../src/core/patterns/exact-word.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";

const tags = (...list: readonly (string | Uint8Array)[]) => ({
  kind: "tags",
  words: list.map(exactWord).join(" "),
});

test.each<[readonly Field[], object]>([
  [[["Cache-Tag", "a, b c ,,d"]], tags("a", "b c", "d")],
  [[["X-Magento-Tags", "cat_c_3,cat_p"]], tags("cat_c_3", "cat_p")],
  [[["Surrogate-Key", "a,b  c\td"]], tags("a,b", "c", "d")],
  [[["xkey", "a b,c"]], tags("a", "b", "c")],
  [[["Cache-Tags", "a b, c"]], tags("a", "b", "c")],
  [[["x-cache-tags", "a,b"]], tags("a", "b")],
  [[["Purge-Cache-Tags", "node:1 node_list"]], tags("node:1", "node_list")],
  [
    [
      ["xkey", "a b"],
      ["XKEY", "b c"],
      ["Cache-Tag", "c"],
    ],
    tags("a", "b", "c"),
  ],
  [[["Cache-Tag", "News, news"]], tags("News", "news")],
  // The bytes of é in UTF-8, each as a character.
  [[["Cache-Tag", "caf\u00c3\u00a9"]], tags("café")],
  [[["Cache-Tag", "caf\u00e9"]], tags(Uint8Array.of(99, 97, 102, 0xe9))],
  [[["Cache-Tag", " , "]], tags()],
  [
    [
      ["Content-Type", "text/html"],
      ["X-Key", "a"],
    ],
    { kind: "none" },
  ],
  [[["Cache-Tag", "x".repeat(1_024)]], tags("x".repeat(1_024))],
  [[["Cache-Tag", "x".repeat(1_025)]], { kind: "too much" }],
])("%j", (fields, found) => {
  expect(cacheTagsOf(fields)).toEqual(found);
});

test("five thousand tags are taken, however often each is named, and one more is too much", () => {
  const list = Array.from({ length: 5_000 }, (_, no) => `t${no}`);
  const of = (names: readonly string[]) => cacheTagsOf([["Surrogate-Key", names.join(" ")]]);
  expect(of([...list, ...list])).toEqual(tags(...list));
  expect(of([...list, "more"])).toEqual({ kind: "too much" });
});

test("each field is known by its name in lower case", () => {
  for (const name of cacheTagFields) {
    expect(name).toBe(name.toLowerCase());
    expect(cacheTagsOf([[name, "a"]])).toEqual(tags("a"));
  }
});
