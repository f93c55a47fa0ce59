// Reading a settings file: every error with its line, and the rendered default file reads back as the defaults.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  readSettings,
  renderSettings,
  restartKeys,
  type SettingsField,
} from "../../src/base/settings.ts";
import {
  duration,
  flagField,
  integer,
  listOf,
  size,
  textField,
} from "../../src/base/settings-fields.ts";

const table = {
  name: { doc: "Who.", example: "someone", parse: textField() },
  log_level: {
    doc: "How much.",
    fallback: "info",
    live: true,
    parse: textField(/^(?:info|debug)$/),
  },
  "cache.disk_max": { doc: "Space.", fallback: "2GiB", parse: size("1MiB") },
  "cache.memory_max": { doc: "Memory.", fallback: "128MiB", parse: size("1MiB") },
  "cache.index.check": { doc: "How often.", fallback: "1d", parse: duration("1s") },
  "edge.place": { doc: "Where.\nA town.", optional: true, example: "Kiel", parse: textField() },
  proxies: { doc: "Who may.", fallback: [], parse: listOf(textField()) },
} satisfies Record<string, SettingsField<unknown>>;

function errorsOf(yaml: string): readonly string[] {
  const read = readSettings(table, yaml);
  return read.ok ? [] : read.errors.map(({ line, key, message }) => `${line} ${key}: ${message}`);
}

test("what is given is read, the rest has its default", () => {
  const read = readSettings(table, "name: me\ncache:\n  disk_max: 3MiB\nproxies: [a, b]\n");
  expect(read).toEqual({
    ok: true,
    settings: {
      name: "me",
      log_level: "info",
      "cache.disk_max": 3 * 2 ** 20,
      "cache.memory_max": 2 ** 27,
      "cache.index.check": 86_400_000,
      proxies: ["a", "b"],
    },
    unknown: [],
  });
});

test.each([
  ["", ["1 name: is required"]],
  ["name:\n", ["1 name: is required"]],
  ["\n\nname: ''\n", ['3 name: must be a text, found ""']],
  ["name: me\nlog_level: ~\n", ["2 log_level: must not be empty"]],
  ["name: me\nedge:\n  place: ~\n", []],
  ["name: me\ncache:\n", []],
  ["name: me\ncache: 5\n", ["2 cache: must be a mapping of keys"]],
  ["- name\n", ["1 : must be a mapping of keys", "1 name: is required"]],
  [
    "name: me\ncache:\n  disk_max: 5\n",
    [expect.stringMatching(/^3 cache\.disk_max: must be a size .*, found 5$/)],
  ],
  ["nam: me\n", ["1 nam: unknown key; did you mean name?", "1 name: is required"]],
  [
    "name: me\ncache:\n  disk_mx: 1GiB\n",
    ["3 cache.disk_mx: unknown key; did you mean cache.disk_max?"],
  ],
  [
    "name: me\ncache:\n  index:\n    chek: 1s\n",
    ["4 cache.index.chek: unknown key; did you mean cache.index.check?"],
  ],
  ["name: me\ncahce:\n  disk_max: 1GiB\n", ["2 cahce: unknown key; did you mean cache?"]],
  ["name: me\nsomething_else: 1\n", ["2 something_else: unknown key"]],
  ["name: me\nx: 1\n", ["2 x: unknown key"]],
  ["name: me\n__proto__: 1\n", ["2 __proto__: unknown key"]],
  ["name: me\nname: you\n", ["2 : Map keys must be unique"]],
  ["name: [\n", [expect.stringMatching(/^1 : /)]],
  [
    "name: *who\n",
    [expect.stringMatching(/^1 name: Unresolved alias.*who/), "1 name: is required"],
  ],
  ["name: me\n---\nname: you\n", [expect.stringMatching(/^2 : /)]],
])("%j", (yaml, errors) => {
  expect(errorsOf(yaml)).toEqual(errors);
});

test("unknown keys may be told instead: what is known is read, and any other error counts", () => {
  const read = readSettings(table, "name: me\nnew_key: 1\ncache:\n  disk_mx: 1GiB\n", "told");
  expect(read).toMatchObject({
    ok: true,
    settings: { name: "me", log_level: "info" },
    unknown: [
      { line: 2, key: "new_key" },
      { line: 4, key: "cache.disk_mx" },
    ],
  });
  const faulty = readSettings(table, "name: me\nnew_key: 1\nlog_level: loud\n", "told");
  expect(faulty).toMatchObject({ ok: false, errors: [{ key: "new_key" }, { key: "log_level" }] });
});

test("what only a restart applies", () => {
  const settings = (yaml: string) => {
    const read = readSettings(table, yaml);
    if (!read.ok) throw new Error("not valid");
    return read.settings;
  };
  const running = settings("name: me\n");
  const read = settings("name: you\nlog_level: debug\nproxies: [a]\n");
  expect(restartKeys(table, running, read)).toEqual(["name", "proxies"]);
  expect(restartKeys(table, running, settings("name: me\ncache:\n  disk_max: 2GiB\n"))).toEqual([]);
});

test("all errors are told, not the first", () => {
  const errors = errorsOf("log_level: loud\ncache:\n  disk_max: big\n  disk: 1\nproxies: {}\n");
  expect(errors.map((error) => error.split(":")[0])).toEqual([
    "4 cache.disk",
    "1 name",
    "1 log_level",
    "3 cache.disk_max",
    "5 proxies",
  ]);
});

test("the rendered file tells every key and reads back as the defaults", () => {
  const yaml = renderSettings("Head.\nSecond line.", table);
  expect(yaml).toBe(
    [
      "# Head.",
      "# Second line.",
      "",
      "# Who. Required.",
      "# name: someone",
      "",
      "# How much. Reloadable.",
      "log_level: info",
      "",
      "cache:",
      "  # Space.",
      "  disk_max: 2GiB",
      "",
      "  # Memory.",
      "  memory_max: 128MiB",
      "",
      "  index:",
      "    # How often.",
      "    check: 1d",
      "",
      "# edge:",
      "  # Where.",
      "  # A town.",
      "  # place: Kiel",
      "",
      "# Who may.",
      "proxies: []",
      "",
    ].join("\n"),
  );
  expect(readSettings(table, `${yaml}\nname: me\n`)).toEqual(readSettings(table, "name: me\n"));
});

test("property: whatever the table, its rendering parses to its defaults", () => {
  const name = fc.stringMatching(/^[a-z][a-z_]{0,8}$/);
  const value = fc.oneof(
    fc.record({
      fallback: fc.integer({ min: 0, max: 1_000 }),
      parse: fc.constant(integer(0, 1_000)),
    }),
    fc.record({ fallback: fc.boolean(), parse: fc.constant(flagField()) }),
    fc.record({ fallback: fc.string({ minLength: 1 }), parse: fc.constant(textField()) }),
    fc.record({
      fallback: fc.array(fc.string({ minLength: 1 }), { maxLength: 3 }),
      parse: fc.constant(listOf(textField())),
    }),
    fc.record({
      optional: fc.constant(true as const),
      example: fc.string({ minLength: 1 }),
      parse: fc.constant(textField()),
    }),
  );
  const doc = fc.array(fc.stringMatching(/^[ -~]{0,20}$/), { minLength: 1, maxLength: 3 });
  const field = fc.tuple(doc, value).map(([lines, rest]) => ({ doc: lines.join("\n"), ...rest }));
  const section = fc.dictionary(name, field, { minKeys: 1, maxKeys: 3 });
  fc.assert(
    fc.property(fc.dictionary(name, fc.oneof(field, section), { maxKeys: 5 }), (tree) => {
      const fields: Record<string, SettingsField<unknown>> = {};
      for (const [key, one] of Object.entries(tree)) {
        if (isField(one)) fields[key] = one;
        else for (const [inner, nested] of Object.entries(one)) fields[`${key}.${inner}`] = nested;
      }
      const read = readSettings(fields, renderSettings("Head.", fields));
      const defaults = Object.entries(fields).filter(([, { optional }]) => optional !== true);
      expect(read).toEqual({
        ok: true,
        settings: Object.fromEntries(defaults.map(([key, { fallback }]) => [key, fallback])),
        unknown: [],
      });
    }),
  );
});

function isField(one: object): one is SettingsField<unknown> {
  return "parse" in one && typeof one.parse === "function";
}
