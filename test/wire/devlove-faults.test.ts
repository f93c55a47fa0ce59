// Faults of a domain's keys, one at a time: each is one error, at its place, that says what is wrong; and what is not served yet.

import { describe, expect, test } from "vitest";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import type { DevloveError } from "../../src/wire/devlove-validate.ts";

const domain = "www.example.com";

/** Errors of one domain, their paths below it. */
function domainErrors(said: unknown): readonly DevloveError[] {
  const content = JSON.stringify({ domains: { [domain]: said } });
  const result = validateDevlove("devlove/1", content, { mainDomain: domain, subDomains: [] });
  const prefix = `/domains/${domain}`;
  return (result.ok ? [] : result.errors).map((error) => {
    expect(error.path.startsWith(prefix)).toBe(true);
    return { ...error, path: error.path.slice(prefix.length) };
  });
}

describe("one fault, one error, at its place", () => {
  test.each([
    [{ views_dri: "." }, "/views_dri", /not a known key/],
    [null, "", /must be an object, found null/],
    [[], "", /must be an object, found a list/],
    [{ views_dir: 1 }, "/views_dir", /must be a string, found the number 1/],
    [{ views_dir: {} }, "/views_dir", /must be a string, found an object/],
    [{ views_dir: null }, "/views_dir", /must be a string, found null/],
    [{ views_dir: "../x" }, "/views_dir", /`\.\.`/],
    [{ views_dir: "/srv/www" }, "/views_dir", /relative/],
    [{ views_dir: "a\u0000b" }, "/views_dir", /control/],
    [{ index: "index.html" }, "/index", /must be a list, found the string "index.html"/],
    [{ index: ["a/b"] }, "/index/0", /without slashes/],
    [{ index: ["a", "b", "a"] }, "/index/2", /already at \/domains\/www.example.com\/index\/0/],
    [
      { index: Array.from({ length: 17 }, (_, at) => `${at}`) },
      "/index",
      /0 to 16 elements, found 17/,
    ],
    [
      { cache: { default: { cookies: ["a"] } } },
      "/cache/default/cookies",
      /must be an object, found a list/,
    ],
    [
      { cache: { rules: [{ path: "/", cookies: { keep: ["a"] } }] } },
      "/cache/rules/0/cookies/keep",
      /not a known key/,
    ],
    [
      { cache: { default: { cookies: { ignore: [""] } } } },
      "/cache/default/cookies/ignore/0",
      /empty/,
    ],
    ...["a b", "=b", "a;b", "ä", 'a"', "a,b", "a b=c"].map((name): [unknown, string, RegExp] => [
      { cache: { default: { cookies: { ignore: ["_ga", name] } } } },
      "/cache/default/cookies/ignore/1",
      /is no name of a cookie/,
    ]),
    [
      { cache: { default: { cookies: { ignore: ["a", "a"] } } } },
      "/cache/default/cookies/ignore/1",
      /already at/,
    ],
    ...["a=b c", 'a="b"', "a=b;c", "a=b,c", "a=ä", "a=b\\c", "*=\t"].map(
      (item): [unknown, string, RegExp] => [
        { cache: { rules: [{ path: "/a", cookies: { vary: ["lang", item] } }] } },
        "/cache/rules/0/cookies/vary/1",
        /has a value that no cookie is compared with/,
      ],
    ),
    [
      { cache: { default: { cookies: { bypass: ["a", "sid"], ignore: ["sid", "sid=1"] } } } },
      "/cache/default/cookies/ignore/0",
      /^"sid" has no effect here: it is also in `bypass`, which is asked first$/,
    ],
    [
      { cache: { default: { cookies: { vary: ["a"], ignore: ["b", "a"] } } } },
      "/cache/default/cookies/ignore/1",
      /also in `vary`/,
    ],
    [
      {
        cache: { default: { cookies: { vary: Array.from({ length: 101 }, (_, at) => `c${at}`) } } },
      },
      "/cache/default/cookies/vary",
      /0 to 100 elements, found 101/,
    ],
    [
      { cache: { default: { cookies: { bypass: [`a=${"b".repeat(511)}`] } } } },
      "/cache/default/cookies/bypass/0",
      /is longer than 512 characters/,
    ],
    [
      { cache: { default: { cookies: { bypass: "sid" } } } },
      "/cache/default/cookies/bypass",
      /must be a list, found the string "sid"/,
    ],
    [{ single_page: false }, "/single_page", /must be a string or null, found false/],
    [{ not_found: "../404.html" }, "/not_found", /`\.\.`/],
    [
      { redirects: [{ from: "/a", to: "/b", status: 303 }] },
      "/redirects/0/status",
      /one of 301, 302, 307, 308, found the number 303/,
    ],
    [
      { redirects: [{ from: "/a", to: "/b", status: "301" }] },
      "/redirects/0/status",
      /found the string "301"/,
    ],
    [{ redirects: [{ from: "/a", to: "/b" }] }, "/redirects/0/status", /`status` is missing/],
    [{ redirects: [{ from: "a", to: "/b", status: 301 }] }, "/redirects/0/from", /must start with/],
    [{ redirects: [{ from: "/a", to: "b", status: 301 }] }, "/redirects/0/to", /must be a path/],
    [{ redirects: [{ from: "/**", to: "/b", status: 301 }] }, "/redirects/0/to", /leads to itself/],
    [{ headers: { set: { Connection: "close" } } }, "/headers/set/Connection", /hop-by-hop/],
    [{ headers: { set: { "a/b~c": "x" } } }, "/headers/set/a~1b~0c", /not a header name/],
    [{ headers: { set: { "X-A": "b\r\nX-C: d" } } }, "/headers/set/X-A", /CR or LF/],
    [
      { headers: { set: { "X-A": 1 } } },
      "/headers/set/X-A",
      /must be a string, found the number 1/,
    ],
    [{ headers: { remove: ["Content-Length"] } }, "/headers/remove/0", /framing/],
    [{ headers: { set: { "X-A": "1", "x-a": "1" } } }, "/headers/set/x-a", /set twice/],
    [{ compression: "no" }, "/compression", /must be true or false, found the string "no"/],
    [{ backend: {} }, "/backend/urls", /`urls` is missing/],
    [{ backend: "http://127.0.0.1" }, "/backend", /must be an object or null, found the string/],
    [{ backend: { urls: [] } }, "/backend/urls", /1 to 16 elements, found 0/],
    [
      { backend: { urls: Array.from({ length: 17 }, (_, at) => `http://10.0.0.${at}`) } },
      "/backend/urls",
      /found 17/,
    ],
    [{ backend: { urls: ["http://169.254.169.254/"] } }, "/backend/urls/0", /link-local/],
    [
      { backend: { urls: ["http://a.example", "http://a.example"] } },
      "/backend/urls/1",
      /already at/,
    ],
    [{ backend: { urls: ["http://a.example"], host: "a b" } }, "/backend/host", /host name/],
    [
      { backend: { urls: ["http://a.example"], retries: 4 } },
      "/backend/retries",
      /0 to 3, found 4/,
    ],
    [
      { backend: { urls: ["http://a.example"], retries: 1.5 } },
      "/backend/retries",
      /must be an integer, found the number 1.5/,
    ],
    [
      { backend: { urls: ["http://a.example"], connect_timeout_s: 0 } },
      "/backend/connect_timeout_s",
      /0.1 to 3600, found 0/,
    ],
    [{ cache: { rules: [{ ttl_s: 1 }] } }, "/cache/rules/0/path", /`path` is missing/],
    [
      { cache: { rules: [{ path: "/a" }, { path: "/a" }] } },
      "/cache/rules/1",
      /no request reaches/,
    ],
    [
      { cache: { rules: [{ path: "/a" }, { path: "/a", match: { query: ["x"] } }] } },
      "/cache/rules/1",
      /rule 0 has the same path and asks no more/,
    ],
    [
      { cache: { default: { ttl_s: 1, override: ["private"] } } },
      "/cache/default/override/0",
      /must be one of no-cache, max-age/,
    ],
    [{ cache: { rules: [{ path: "/a", match: {} }] } }, "/cache/rules/0/match", /asks for nothing/],
    [
      { cache: { rules: [{ path: "/a", match: { media_type: [] } }] } },
      "/cache/rules/0/match",
      /asks for nothing/,
    ],
    ...(["bypass", "query", "cookies", "vary"] as const).map((key): [object, string, RegExp] => {
      const said = { bypass: true, query: { keep: ["a"] }, cookies: {}, vary: ["X-A"] }[key];
      const match = { media_type: ["image/*"] };
      return [
        { cache: { rules: [{ path: "/a" }, { path: "/b", match, [key]: said }] } },
        `/cache/rules/1/${key}`,
        new RegExp(`\`${key}\` cannot stand beside \`match.media_type\``),
      ];
    }),
    [
      {
        cache: {
          rules: [
            {
              path: "/a",
              match: { media_type: ["image/*"] },
              headers: { response: {}, request: {} },
            },
          ],
        },
      },
      "/cache/rules/0/headers/request",
      /`headers.request` cannot stand beside `match.media_type`/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { media_type: ["*/*"] } }] } },
      "/cache/rules/0/match/media_type/0",
      /every media type/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { media_type: ["text/css", "text/css"] } }] } },
      "/cache/rules/0/match/media_type/1",
      /./,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { method: ["HEAD"] } }] } },
      "/cache/rules/0/match/method/0",
      /must be one of GET/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { method: ["POST"] }, ttl_s: 1 }] } },
      "/cache/rules/0/ttl_s",
      /only answers to GET/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { header: { Cookie: "a*" } } }] } },
      "/cache/rules/0/match/header/Cookie",
      /`cookies` of the rule/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { header: { "X-A": "" } } }] } },
      "/cache/rules/0/match/header/X-A",
      /any value/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { query: ["?a"] } }] } },
      "/cache/rules/0/match/query/0",
      /leave out the `\?`/,
    ],
    [
      { cache: { rules: [{ path: "/a", match: { query: ["a=1&b"] } }] } },
      "/cache/rules/0/match/query/0",
      /one parameter/,
    ],
    [{ cache: { rules: [{ path: "/a", ttl_s: -1 }] } }, "/cache/rules/0/ttl_s", /found -1/],
    [
      { cache: { rules: [{ path: "/a", query: { ignore: ["a"], keep: ["b"] } }] } },
      "/cache/rules/0/query",
      /exclude/,
    ],
    [
      { cache: { rules: [{ path: "/a", query: { keep: ["a=b"] } }] } },
      "/cache/rules/0/query/keep/0",
      /name of a parameter/,
    ],
    [
      { cache: { rules: [{ path: "/a", bypass: true, ttl_s: 5 }] } },
      "/cache/rules/0/ttl_s",
      /no effect/,
    ],
    [
      { cache: { rules: [{ path: "/a", bypass: true, negative_ttl_s: 5 }] } },
      "/cache/rules/0/negative_ttl_s",
      /no effect/,
    ],
    [
      { cache: { rules: [{ path: "/a", bypass: true, browser_ttl_s: 5 }] } },
      "/cache/rules/0/browser_ttl_s",
      /no effect/,
    ],
    [
      { cache: { default: { headers: { response: { set: { Connection: "x" } } } } } },
      "/cache/default/headers/response/set/Connection",
      /hop-by-hop/,
    ],
    [
      { cache: { rules: [{ path: "/a", headers: { response: { remove: ["Content-Length"] } } }] } },
      "/cache/rules/0/headers/response/remove/0",
      /framing header/,
    ],
    [
      { cache: { default: { headers: { response: { set: { A: "1" }, remove: ["a"] } } } } },
      "/cache/default/headers/response/remove/0",
      /also set/,
    ],
    [
      { cache: { default: { headers: { request: { set: { A: "1", a: "2" } } } } } },
      "/cache/default/headers/request/set/a",
      /set twice/,
    ],
    [
      { cache: { default: { headers: { request: { set: { A: "1\r\nB: 2" } } } } } },
      "/cache/default/headers/request/set/A",
      /one line/,
    ],
    [
      { cache: { default: { headers: { request: { remove: ["A", "A"] } } } } },
      "/cache/default/headers/request/remove/1",
      /already at/,
    ],
    [
      { cache: { default: { headers: { requests: {} } } } },
      "/cache/default/headers/requests",
      /not a known key/,
    ],
    [
      { cache: { default: { vary: ["B", "a"], headers: { request: { set: { A: "1" } } } } } },
      "/cache/default/vary/1",
      /`a` tells no answers apart/,
    ],
    [
      { cache: { default: { vary: ["a"], headers: { request: { remove: ["A"] } } } } },
      "/cache/default/vary/0",
      /`a` tells no answers apart/,
    ],
    [{ cache: { default: { path: "/a" } } }, "/cache/default/path", /not a known key/],
    [{ static: { max_age_s: 1.5 } }, "/static/max_age_s", /integer/],
    [{ limits: { body_bytes_max: -1 } }, "/limits/body_bytes_max", /found -1/],
  ])("%j", (said, path, message) => {
    const errors = domainErrors(said);
    expect(errors.map((error) => error.path)).toEqual([path]);
    expect(errors[0]?.message).toMatch(message);
  });
});

describe("half a surrogate pair, which no store and no file keeps as it is, is refused at its place", () => {
  const rows: readonly (readonly [string, object])[] = [
    ["/views_dir", { views_dir: "\udc00" }],
    ["/index/1", { index: ["a.html", "\ud83d.html"] }],
    ["/single_page", { single_page: "\ud800.html" }],
    ["/not_found", { not_found: "\ude00\ud83d.html" }],
    ["/redirects/0/from", { redirects: [{ from: "/\ud800", to: "/b", status: 301 }] }],
    ["/redirects/0/to", { redirects: [{ from: "/a", to: "/\ud800", status: 301 }] }],
    ["/headers/set/X-A", { headers: { set: { "X-A": "\ud800" } } }],
    ["/headers/remove/0", { headers: { remove: ["\ud800"] } }],
    ["/backend/urls/0", { backend: { urls: ["http://a.example/\ud800"] } }],
    ["/cache/rules/0/path", { cache: { rules: [{ path: "/\ud800" }] } }],
    [
      "/cache/rules/0/query/keep/0",
      { cache: { rules: [{ path: "/a", query: { keep: ["\ud800"] } }] } },
    ],
  ];
  /** JSON.stringify writes halves as escapes. */
  const bare = (text: string): string =>
    text.replaceAll(/\\u(d[89a-f][0-9a-f]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );

  test.each(rows)("%s", (path, said) => {
    const document = JSON.stringify({ domains: { [domain]: said } });
    expect(bare(document).isWellFormed()).toBe(false);
    for (const content of [document, bare(document)]) {
      expect(
        validateDevlove("devlove/1", content, { mainDomain: domain, subDomains: [] }),
      ).toMatchObject({
        ok: false,
        errors: [
          {
            path: `/domains/${domain}${path}`,
            message: expect.stringMatching(/has half a surrogate pair/),
          },
        ],
      });
    }
  });

  test("in names too, and both halves together are a character like any other", () => {
    expect(domainErrors({ headers: { set: { "\ud800": "x" } } })).toMatchObject([
      { message: expect.stringMatching(/not a header name/) },
    ]);
    const named = JSON.stringify({ domains: { "\ud800.example": {} } });
    const verdict = validateDevlove("devlove/1", named, { mainDomain: null, subDomains: [] });
    expect(verdict.ok).toBe(false);
    expect(domainErrors({ not_found: "😀.html", views_dir: "\ud83d\ude00" })).toEqual([]);
  });
});

describe("images", () => {
  test("are judged by type", () => {
    expect(domainErrors({ images: { optimize: "yes" }, tls: { hsts_s: -5 } })).toMatchObject([
      { path: "/images/optimize", message: expect.stringMatching(/true or false/) },
      { path: "/tls/hsts_s", message: expect.stringMatching(/found -5/) },
    ]);
  });
});

describe("the end of a pause", () => {
  const nowMs = Date.parse("2026-11-25T12:00:00Z");
  const faultOf = (text: string, at: number | undefined = nowMs) => {
    const domains = { "a.example": { cache: { paused_until: text } } };
    const context = { mainDomain: null, subDomains: [], ...(at !== undefined && { nowMs: at }) };
    const verdict = validateDevlove("devlove/1", JSON.stringify({ domains }), context);
    return verdict.ok ? undefined : verdict.errors.map(({ path, message }) => `${path} ${message}`);
  };
  const path = "/domains/a.example/cache/paused_until";

  test.each(["2026-11-25T12:30:00Z", "2026-11-26T13:00:00+01:00", "2020-01-01t00:00:00z"])(
    "%s may be",
    (text) => expect(faultOf(text)).toBeUndefined(),
  );

  test("is a day ahead at most, where the time is known", () => {
    const text = "2026-11-26T12:06:00Z";
    expect(faultOf(text)).toEqual([
      `${path} "${text}" is more than a day ahead: a pause may last 24 hours at most`,
    ]);
    const taken = { domains: { "a.example": { cache: { paused_until: text } } } };
    const context = { mainDomain: null, subDomains: [] };
    expect(validateDevlove("devlove/1", JSON.stringify(taken), context).ok).toBe(true);
  });

  test.each([
    "tomorrow",
    "2026-11-25",
    "2026-11-25T12:00:00",
    "2026-13-25T12:00:00Z",
    "1764072000",
  ])("%s is no time", (text) =>
    expect(faultOf(text)?.[0]).toMatch(/is not a time with its offset/),
  );
});

test.each([
  ["Authorization", /credential/],
  ["Cookie", /`cookies`/],
  ["host", /names the site/],
  ["Connection", /hop-by-hop/],
  ["Transfer-Encoding", /hop-by-hop/],
  ["Proxy-Authorization", /hop-by-hop/],
  ["Content-Length", /framing/],
  ["X-Forwarded-For", /said by the accelerator/],
  ["x-forwarded-anything", /said by the accelerator/],
  ["Forwarded", /said by the accelerator/],
  ["Via", /said by the accelerator/],
  ["X-Real-IP", /said by the accelerator/],
  ["X-Accel-Decision", /said by the accelerator/],
  ["Accept-Encoding", /`compression`/],
  ["Expect", /answered by the accelerator/],
  ["Proxy", /never reaches/],
  ["If-None-Match", /condition/],
  ["If-Modified-Since", /condition/],
  ["If-Range", /condition/],
  ["If-Match", /condition/],
  ["Range", /part/],
  ["X_Key", /`_` in its name/],
  ["a b", /not a header name/],
])("no rule sets or removes the request header %s", (name, message) => {
  const ofRule = (request: object) => ({ cache: { default: { headers: { request } } } });
  const place = "/cache/default/headers/request";
  const [setting, ...others] = domainErrors(ofRule({ set: { [name]: "1" } }));
  expect([setting?.path, others]).toEqual([`${place}/set/${name}`, []]);
  expect(setting?.message).toMatch(message);
  const [removing] = domainErrors(ofRule({ remove: [name] }));
  expect(removing?.path).toBe(`${place}/remove/0`);
  expect(removing?.message).toMatch(message);
});
