// What no schema can say of a devlove: rows of data for each check.

import { describe, expect, test } from "vitest";
import {
  addressRangeFault,
  cacheFaults,
  domainNameFault,
  filePathFault,
  headerNameFault,
  headerValueFault,
  headersFaults,
  indexNameFault,
  originPathFault,
  purgeKeyFault,
  queryFaults,
  redirectTargetFault,
  redirectsFaults,
  viewsDirFault,
  wildRedirectsMax,
} from "../../../src/core/serving/devlove-semantics.ts";

const checks = {
  viewsDirFault,
  filePathFault,
  indexNameFault,
  headerNameFault,
  headerValueFault,
  redirectTargetFault,
  originPathFault,
  domainNameFault,
  addressRangeFault,
  purgeKeyFault,
};

const accepted: Record<keyof typeof checks, readonly string[]> = {
  viewsDirFault: [".", "static", "a/b", "./a/", "..a", "a..b", "weiß"],
  filePathFault: ["index.html", "/404.html", "errors/404.html"],
  indexNameFault: ["index.html", ".index"],
  headerNameFault: ["X-Frame-Options", "set-cookie", "cache-control", "x_y.z"],
  headerValueFault: ["", "a b\tc", "é", "max-age=60"],
  redirectTargetFault: ["/", "/new?a=b#c", "https://example.com/x", "HTTP://example.com"],
  originPathFault: ["/", "/health?full=1"],
  addressRangeFault: ["192.0.2.1", "10.0.0.0/8", "2001:db8::1", "2001::/16", "::ffff:10.0.0.0/104"],
  purgeKeyFault: ["0123456789abcdef".repeat(4)],
  domainNameFault: [
    "example.com",
    "a-b.c_d.example.com",
    "xn--bcher-kva.example",
    "demo.localhost",
  ],
};

const refused: Record<keyof typeof checks, readonly string[]> = {
  viewsDirFault: ["", "/", "/etc", "..", "../a", "a/..", "a/../b", "a\0b", "a\\b", "a\nb"],
  filePathFault: ["", "/", ".", "a/.", "a/", "//a", "../a", "/../a", "a\0"],
  indexNameFault: ["", ".", "..", "a/b", "/a", "a\\b", "a\0"],
  headerNameFault: ["", "a b", "a:b", "a\r\n", "é", "__proto__", "a".repeat(300)],
  headerValueFault: ["a\r\nb: c", "a\n", "a\0", "\u007f", "€"],
  redirectTargetFault: [
    "",
    "new",
    "//evil.example",
    "/\\evil.example",
    "javascript:alert(1)",
    "/a b",
    "/a\r\nX: y",
    "/new/**",
    "http://u:p@example.com",
    "http://:80",
    "/ü",
  ],
  originPathFault: ["", "health", "/a b", "/a#b"],
  addressRangeFault: [
    "",
    "localhost",
    "0.0.0.0/0",
    "10.0.0.0/7",
    "192.0.2.1/24",
    "::/0",
    "fe80::1%eth0",
  ],
  purgeKeyFault: [
    "",
    "secret",
    "0123456789ABCDEF".repeat(4),
    "0".repeat(63),
    `sha256:${"0".repeat(64)}`,
  ],
  domainNameFault: [
    "",
    "localhost",
    "Example.com",
    "-a.example",
    "a..example",
    "a.example.",
    "a b.example",
    "1.2.3.4/",
    `${"a".repeat(64)}.example`,
  ],
};

const names: readonly (keyof typeof checks)[] = [
  "viewsDirFault",
  "filePathFault",
  "indexNameFault",
  "headerNameFault",
  "headerValueFault",
  "redirectTargetFault",
  "originPathFault",
  "domainNameFault",
  "addressRangeFault",
  "purgeKeyFault",
];

describe.each(names)("%s", (name) => {
  test.each(accepted[name])("accepts %j", (text) => {
    expect(checks[name](text)).toBeUndefined();
  });

  test.each(refused[name])("refuses %j", (text) => {
    expect(checks[name](text)).toBeTypeOf("string");
  });
});

test.each([
  ["Connection keep-alive TE Trailer Transfer-Encoding upgrade proxy-connection", /hop-by-hop/],
  ["Content-Length content-encoding content-range", /framing/],
])("%s are refused", (headers, reason) => {
  for (const name of headers.split(" ")) expect(headerNameFault(name)).toMatch(reason);
});

test("a query rule has exactly one side", () => {
  expect(queryFaults({ ignore: [] })).toEqual([]);
  expect(queryFaults({ keep: "whatever" })).toEqual([]);
  expect(queryFaults({ ignore: [], keep: [] })).toMatchObject([
    { path: [], message: expect.stringMatching(/exclude/) },
  ]);
  expect(queryFaults({})).toMatchObject([
    { path: [], message: expect.stringMatching(/must be given/) },
  ]);
});

test("a lifetime on a bypass is a contradiction", () => {
  expect(cacheFaults({ bypass: true, ttl_s: 5 })).toMatchObject([{ path: ["ttl_s"] }]);
  expect(cacheFaults({ bypass: false, ttl_s: 5 })).toEqual([]);
});

test("a header is set once and not removed as well", () => {
  const faults = headersFaults({
    set: { "X-A": "1", "x-a": "2", "X-B": "3" },
    remove: ["x-b", "x-c", 7],
  });
  expect(faults).toMatchObject([{ path: ["set", "x-a"] }, { path: ["remove", 0] }]);
  expect(headersFaults({ set: null, remove: "x" })).toEqual([]);
});

describe("redirects that lead to themselves", () => {
  const self = (
    ...redirects: readonly (readonly [from: unknown, to: unknown])[]
  ): readonly unknown[] =>
    redirectsFaults(redirects.map(([from, to]) => ({ from, to }))).map((fault) => fault.path);

  test.each([
    [[["/a", "/a"]], [[0, "to"]]],
    [[["/a", "/a?x=1#y"]], [[0, "to"]]],
    [[["/a", "/%61"]], [[0, "to"]]],
    [[["/**", "/home"]], [[0, "to"]]],
    [[["/old/*", "/old/new"]], [[0, "to"]]],
    [[["/a", "/b"]], []],
    [[["/a", "https://example.com/a"]], []], // Another host, as far as is known here.
    [[["/old/**", "/new"]], []],
    // An earlier redirect takes the target away.
    [
      [
        ["/home", "https://example.com/"],
        ["/**", "/home"],
      ],
      [],
    ],
    [
      [
        ["/h*", "https://example.com/"],
        ["/**", "/home"],
      ],
      [],
    ],
    [
      [
        ["/**", "/home"],
        ["/home", "https://example.com/"],
      ],
      [[0, "to"]],
    ],
    // What has faults of its own is not judged.
    [
      [
        ["a", "/a"],
        ["/b", "b"],
        [1, "/c"],
        ["/d", null],
      ],
      [],
    ],
  ] as const)("%j: %j", (redirects, paths) => {
    expect(self(...redirects)).toEqual(paths);
  });

  test("values that are no objects are passed over", () => {
    expect(redirectsFaults([null, 1, "x", [], { from: "/a" }])).toEqual([]);
  });
});

test("wildcard redirects are limited, exact ones are not", () => {
  const wild = Array.from({ length: wildRedirectsMax + 5 }, (_, at) => ({
    from: `/w${at}/*`,
    to: "/x",
  }));
  expect(redirectsFaults(wild)).toMatchObject([
    { path: [wildRedirectsMax], message: expect.stringMatching(/wildcards/) },
  ]);
  expect(redirectsFaults(wild.map(({ to }, at) => ({ from: `/e${at}`, to })))).toEqual([]);
});
