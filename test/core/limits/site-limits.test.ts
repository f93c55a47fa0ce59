// Which rules of `limits` a request meets, whatever the spelling of its path, and what counts together.

import { expect, test } from "vitest";
import { compileLimits } from "../../../src/core/limits/site-limits.ts";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";

const main = "www.example.com";
type Limits = NonNullable<SiteInput["limits"]>;

function limitsOf(limits: Limits, domain = main) {
  return compileLimits(effectiveDevlove({ domains: { [domain]: { limits } } }, domain, null));
}

const rules: NonNullable<Limits["requests"]> = [
  { path: "/login", methods: ["POST"], rate: 5, per_s: 60 },
  { path: "/api/**", rate: 100, burst: 20, mode: "monitor" },
  { path: "/**", methods: ["GET"], rate: 50 },
];

function met(method: string, rawPath: string): readonly string[] {
  const { requests } = limitsOf({ requests: rules });
  return requests(rawPath).flatMap(({ takes, text }) => (takes(method) ? [text.split(":")[0] ?? ""] : [])); // prettier-ignore
}

test.each([
  ["POST", "/login", ["POST /login"]],
  ["GET", "/login", ["GET /**"]],
  ["HEAD", "/", ["GET /**"]],
  ["PUT", "/", []],
  ["PUT", "/api/a", ["/api/**"]],
  ["GET", "/api/a", ["/api/**", "GET /**"]],
  // Spellings that servers may read as the path.
  ["POST", "/%6cogin", ["POST /login"]],
  ["POST", "//login", ["POST /login"]],
  ["POST", "/x/../login", ["POST /login"]],
  ["POST", "/login;id=1", ["POST /login"]],
  ["POST", "/%256cogin", ["POST /login"]],
  ["POST", "\\login", ["POST /login"]],
  ["POST", "//./login", ["POST /login"]],
  ["POST", "/x/..%2flogin", ["POST /login"]],
  ["POST", "/login%3Fx", ["POST /login"]],
  ["POST", "/login%23x", ["POST /login"]],
  ["POST", "/login%00x", ["POST /login"]],
  ["POST", "/loginx", []],
  ["POST", "/login/", []],
  ["POST", "/LOGIN", []],
])("%s %s meets %j", (method, path, said) => {
  expect(met(method, path)).toEqual(said);
});

test("a rule is told in words, with its burst", () => {
  expect(
    limitsOf({ requests: rules }).all.map(({ text, isEnforced }) => [text, isEnforced]),
  ).toEqual([
    ["POST /login: 5 in 60 s, 5 at once", true],
    ["/api/**: 100 in 1 s, 20 at once", false],
    ["GET /**: 50 in 1 s, 50 at once", true],
  ]);
});

test("the mode, the order of methods and other rules do not make it another rule; all else does", () => {
  const nameOf = (rule: NonNullable<Limits["requests"]>[number], domain = main): string =>
    limitsOf({ requests: [rule] }, domain).all[0]?.name ?? "";
  const rule = { path: "/a", methods: ["GET", "POST"], rate: 5, per_s: 1, burst: 5 } as const;
  const same = [
    { ...rule, mode: "monitor" as const },
    { ...rule, methods: ["POST" as const, "GET" as const] },
    { path: "/a", methods: rule.methods, rate: 5 },
  ];
  for (const one of same) expect(nameOf(one)).toBe(nameOf(rule));
  const others = [
    { ...rule, path: "/b" },
    { ...rule, methods: [] },
    { ...rule, rate: 6 },
    { ...rule, per_s: 2 },
    { ...rule, burst: 6 },
  ];
  expect(new Set([rule, ...others].map((one) => nameOf(one))).size).toBe(6);
  expect(nameOf(rule, "b.example")).not.toBe(nameOf(rule));
});

test("what says the same twice, in a document of another release, counts once", () => {
  const rule = { path: "/**", rate: 5 } as const;
  const { all } = limitsOf({ requests: [rule, { ...rule, mode: "monitor" }] });
  expect(all.map(({ isEnforced }) => isEnforced)).toEqual([true]);
});

test("the first rule of bytes that the path meets says how fast", () => {
  const { bytes } = limitsOf({
    bytes: [
      { path: "/big/small/**", rate_bytes_s: 2_048, after_bytes: 7 },
      { path: "/big/**", rate_bytes_s: 4_096 },
    ],
  });
  expect(bytes("/big/small/a")).toEqual({ rateBytesS: 2_048, afterBytes: 7 });
  expect(bytes("/big/%2e/a;b")).toEqual({ rateBytesS: 4_096, afterBytes: 0 });
  expect(bytes("/other")).toBeUndefined();
  expect(limitsOf({}).bytes("/big/a")).toBeUndefined();
});
