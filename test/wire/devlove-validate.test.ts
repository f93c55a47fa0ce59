// The validator of devlove documents: every error at once, each with its place; what is not served yet; hostile documents.

import { describe, expect, test } from "vitest";
import { effectiveDevlove } from "../../src/core/serving/effective-devlove.ts";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import type { DevloveContext, DevloveError } from "../../src/wire/devlove-validate.ts";
import { cpuMs } from "../support/cpu-time.ts";

const main = "www.example.com";
const context: DevloveContext = {
  mainDomain: main,
  subDomains: ["static.example.com", "img.example.com"],
};

function errorsOf(
  content: string,
  schema = "devlove/1",
  known: DevloveContext = context,
): readonly DevloveError[] {
  const result = validateDevlove(schema, content, known);
  return result.ok ? [] : result.errors;
}

/** Errors of one domain, their paths below it. */
function domainErrors(domain: unknown): readonly DevloveError[] {
  const prefix = `/domains/${main}`;
  return errorsOf(JSON.stringify({ domains: { [main]: domain } })).map((error) => {
    expect(error.path.startsWith(prefix)).toBe(true);
    return { ...error, path: error.path.slice(prefix.length) };
  });
}

test("the document of the manual is valid", () => {
  const document = {
    domains: {
      "www.example.com": {
        views_dir: ".",
        backend: { urls: ["http://127.0.0.1:8081"], response_timeout_s: 30 },
        cache: { rules: [{ path: "/img/**", ttl_s: 3600, query: { ignore: ["utm_*"] } }] },
        bots: { mode: "enforce" },
      },
      "static.example.com": { views_dir: "static" },
    },
  };
  const result = validateDevlove("devlove/1", JSON.stringify(document), context);
  expect(result).toEqual({ ok: true, devlove: document });
  if (!result.ok) return;
  // The schema's type is what the effective configuration is made from: this line is checked by the compiler.
  const site = effectiveDevlove(result.devlove, main, null);
  expect(site.cache.rules).toMatchObject([{ ttl_s: 3600, bypass: false }]);
});

test("a domain with every key that is served is valid", () => {
  const domain = {
    views_dir: "public",
    index: ["index.html", "index.htm"],
    single_page: "app.html",
    not_found: "/404.html",
    redirects: [{ from: "/old/**", to: "/new?x=1", status: 308 }],
    headers: { set: { "X-Frame-Options": "DENY" }, remove: ["Server"] },
    compression: false,
    backend: {
      urls: ["http://127.0.0.1:8081", "https://origin.example.net"],
      host: "origin.example.net",
      connect_timeout_s: 0.5,
      response_timeout_s: 60,
      idle_timeout_s: 90,
      retries: 3,
      health: null,
    },
    cache: {
      rules: [
        {
          path: "/a/**",
          ttl_s: 0,
          query: { keep: ["id"] },
          cookies: {
            bypass: ["sid", "role=admin"],
            vary: ["lang", "cur*=E*"],
            ignore: ["ab_*", "seen="],
          },
          ignore_set_cookie: false,
          stale_if_error_s: 0,
        },
        { path: "/b/**", bypass: true },
      ],
      default: { ttl_s: 60, query: { ignore: ["utm_*"] }, stale_while_revalidate_s: 0 },
    },
    static: { max_age_s: 60 },
    bots: { mode: "monitor" },
    images: {
      optimize: true,
      formats: ["avif"],
      quality: 1,
      widths: [16, 4_096],
      variants_per_day_max: 0,
    },
    tls: { redirect_http: false, hsts_s: 0 },
    limits: { body_bytes_max: 1 },
  };
  expect(domainErrors(domain)).toEqual([]);
});

test.each([[{}], [{ [main]: {} }], [{ "img.example.com": { backend: null } }]])(
  "%j is valid",
  (domains) => {
    expect(errorsOf(JSON.stringify({ domains }))).toEqual([]);
  },
);

test("all errors, in the order of the document", () => {
  const paths = domainErrors({
    index: [1, "a/b", "ok", ".."],
    backend: { urls: ["http://169.254.1.1", "ftp://x", 5], retries: "1", helth: null },
    cache: { rules: [{ path: "x", ttl_s: "1" }, 7, { path: "/ok", qery: {} }], defaults: {} },
    images: { optimize: 1, widths: [640, 15] },
    bots: { mode: "watch" },
  }).map((error) => error.path);
  const expected = [
    "/index/0 /index/1 /index/3",
    "/backend/urls/0 /backend/urls/1 /backend/urls/2 /backend/retries /backend/helth",
    "/cache/rules/0/path /cache/rules/0/ttl_s /cache/rules/1 /cache/rules/2/qery /cache/defaults",
    "/images/optimize /images/widths/1 /bots/mode",
  ];
  expect(paths).toEqual(expected.flatMap((line) => line.split(" ")));
});

test("unknown keys and values come with what is allowed and what was meant", () => {
  expect(domainErrors({ backend: { url: ["http://127.0.0.1"] } })).toMatchObject([
    {
      path: "/backend/url",
      did_you_mean: "urls",
      allowed: [
        "urls",
        "host",
        "connect_timeout_s",
        "response_timeout_s",
        "idle_timeout_s",
        "retries",
        "stream_request_body",
        "health",
      ],
    },
    { path: "/backend/urls" },
  ]);
  expect(domainErrors({ bots: { mode: "monitr" } })).toMatchObject([
    { allowed: ["enforce", "monitor"], did_you_mean: "monitor" },
  ]);
  const [unheardOf] = domainErrors({ zzz: 1 });
  expect(unheardOf).not.toHaveProperty("did_you_mean");
});

describe("domains", () => {
  test("only the main domain and its sub-domains", () => {
    const content = JSON.stringify({
      domains: {
        "WWW.example.com": {},
        "ww.example.com": { index: 1 },
        "other.test": {},
        constructor: {},
      },
    });
    const allowed = [main, ...context.subDomains];
    const message = expect.stringMatching(/neither the main domain/);
    expect(errorsOf(content)).toEqual([
      { path: "/domains/WWW.example.com", message, allowed, did_you_mean: main },
      { path: "/domains/ww.example.com", message, allowed, did_you_mean: main },
      { path: "/domains/other.test", message, allowed },
      { path: "/domains/constructor", message, allowed },
      { path: "/domains/ww.example.com/index", message: expect.any(String) },
    ]);
  });

  test("any host names where the domain is not known", () => {
    const unknown = { mainDomain: null, subDomains: [] };
    const content = JSON.stringify({ domains: { "a.example": {}, "b.test": {}, "no name": {} } });
    expect(errorsOf(content, "devlove/1", unknown)).toMatchObject([{ path: "/domains/no name" }]);
  });

  test("thousands of sub-domains are not listed in each error", () => {
    const many = {
      mainDomain: main,
      subDomains: Array.from({ length: 5_000 }, (_, at) => `s${at}.example.com`),
    };
    const [error] = errorsOf('{"domains":{"x.example.org":{}}}', "devlove/1", many);
    expect(error?.allowed).toHaveLength(100);
  });
});

test.each([
  ["[]", "", /must be an object, found a list/],
  ["null", "", /must be an object, found null/],
  ["{}", "/domains", /`domains` is missing/],
  ['{"domains":[]}', "/domains", /must be an object/],
  ['{"domains":{},"domain":{}}', "/domain", /not a known key/],
  ["", "", /line 1, column 1/],
  ['{\n "domains": {},\n}', "", /not valid JSON at line 3, column 1/],
  ['{"domains":{},"domains":{}}', "/domains", /given twice, again at line 1, column 15/],
])("%s", (content, path, message) => {
  const errors = errorsOf(content);
  expect(errors.map((error) => error.path)).toEqual([path]);
  expect(errors[0]?.message).toMatch(message);
});

test("a schema that is not known is named, and nothing else is judged by its rules", () => {
  expect(errorsOf("{", "devlove/2")).toEqual([
    {
      path: "",
      message: 'the schema "devlove/2" is not known',
      allowed: ["devlove/1"],
      did_you_mean: "devlove/1",
    },
  ]);
});

test("1 MiB of UTF-8 is read, a byte more is not", () => {
  const padded = (bytes: number): string => '{"domains":{}}'.padEnd(bytes);
  expect(errorsOf(padded(1_048_576))).toEqual([]);
  expect(errorsOf(padded(1_048_577))).toMatchObject([
    { message: expect.stringMatching(/larger than 1 MiB/) },
  ]);
  const wide = `{"domains":{}, "x": "${"é".repeat(600_000)}"}`;
  expect(errorsOf(wide)).toMatchObject([{ message: expect.stringMatching(/larger than 1 MiB/) }]);
});

test("the guard's reason is an error like any other", () => {
  const guarded = {
    ...context,
    backendGuard: (url: URL) => (url.port === "8080" ? "points at the agent itself" : undefined),
  };
  const content = JSON.stringify({
    domains: { [main]: { backend: { urls: ["http://127.0.0.1:8080", "http://127.0.0.1:8081"] } } },
  });
  expect(errorsOf(content, "devlove/1", guarded)).toMatchObject([
    {
      path: `/domains/${main}/backend/urls/0`,
      message: '"http://127.0.0.1:8080" points at the agent itself',
    },
  ]);
});

describe("hostile documents", () => {
  test("`__proto__` is refused wherever it stands, and changes nothing", () => {
    const proto = '"__proto__": {"optimize": true, "polluted": 1}';
    const content = `{${proto}, "domains": {${proto}, "${main}": {${proto}, "images": {${proto}}, "headers": {"set": {"__proto__": "x"}}}}}`;
    const paths = errorsOf(content).map((error) => error.path);
    for (const path of [
      "",
      "/domains",
      `/domains/${main}`,
      `/domains/${main}/images`,
      `/domains/${main}/headers/set`,
    ]) {
      expect(paths).toContain(`${path}/__proto__`);
    }
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    expect(
      domainErrors(JSON.parse('{"constructor": 1, "toString": 2, "hasOwnProperty": 3}')),
    ).toHaveLength(3);
  });

  test("a document full of errors is answered with a bounded list that counts the rest", () => {
    const keys = Array.from({ length: 60_000 }, (_, at) => `"k${at}":1`).join(",");
    const errors = errorsOf(`{"domains":{"${main}":{${keys}}}}`);
    expect(errors).toHaveLength(1_001);
    expect(errors.at(-1)).toEqual({ path: "", message: "and 59000 more errors" });
  });

  test("depth is a fault, not a stack overflow", () => {
    for (const open of ["[", '{"domains":']) {
      const message = expect.stringMatching(/nested deeper than 64 levels/);
      expect(errorsOf(open.repeat(50_000))).toMatchObject([{ path: "", message }]);
    }
  });

  test("long names are cut where errors repeat them", () => {
    const long = "n".repeat(500_000);
    const keys = Array.from({ length: 1_000 }, (_, at) => `"k${at}":1`).join(",");
    const errors = errorsOf(`{"domains":{"${long}":{${keys}}}}`);
    expect(errors.length).toBeGreaterThan(1_000);
    expect(JSON.stringify(errors).length).toBeLessThan(2_000_000);
  });

  test("the worst patterns that fit do not take long", () => {
    const redirects = Array.from({ length: 100 }, (_, at) => ({
      from: `/${"*a".repeat(250)}${at}`,
      to: `/${"a".repeat(2_000)}`,
      status: 301,
    }));
    const began = cpuMs();
    expect(domainErrors({ redirects })).toEqual([]);
    expect(cpuMs(began)).toBeLessThan(2_000);
  });
});
