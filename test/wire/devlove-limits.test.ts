// What the validator says against rules of `limits`, and at which place; and that documents that follow the schema never trip it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { compileLimits } from "../../src/core/limits/site-limits.ts";
import { effectiveDevlove } from "../../src/core/serving/effective-devlove.ts";
import { takeDevlove, validateDevlove } from "../../src/wire/devlove-validate.ts";

const domain = "www.example.com";

function validate(limits: unknown) {
  const content = JSON.stringify({ domains: { [domain]: { limits } } });
  return validateDevlove("devlove/1", content, { mainDomain: domain, subDomains: [] });
}

const login = { path: "/login", rate: 5 };

test.each<[object, string, RegExp]>([
  [
    { requests: [{ path: "/a", rate: 1_001 }] },
    "requests/0/rate",
    /`rate` is 1000 at most in 1 s: a thousand a second/,
  ],
  [
    { requests: [{ path: "/a", rate: 100_000, per_s: 99 }] },
    "requests/0/rate",
    /is 99000 at most in 99 s/,
  ],
  [
    { requests: [{ path: "/a", rate: 1, per_s: 60, burst: 1_441 }] },
    "requests/0/burst",
    /`burst` is 1440 at most at this rate: what is used up has to come back within a day/,
  ],
  [
    {
      requests: [
        login,
        { ...login, path: "/b" },
        { ...login, per_s: 1, burst: 5, mode: "monitor" },
      ],
    },
    "requests/2",
    /rule 0 says the same: each request would count twice/,
  ],
  [
    {
      requests: [
        { ...login, methods: ["GET", "POST"] },
        { ...login, methods: ["POST", "GET"] },
      ],
    },
    "requests/1",
    /rule 0 says the same/,
  ],
  // The burst that is in force where none is said is 10,000 at most.
  [
    {
      requests: [
        { path: "/a", rate: 20_000, per_s: 20 },
        { path: "/a", rate: 20_000, per_s: 20, burst: 10_000 },
      ],
    },
    "requests/1",
    /rule 0 says the same/,
  ],
  [{ requests: [{ path: "login", rate: 5 }] }, "requests/0/path", /must start with/],
  [{ requests: [{ ...login, rates: 5 }] }, "requests/0/rates", /not a known key/],
  [{ requests: [{ path: "/a" }] }, "requests/0/rate", /./],
  [{ requests: [{ ...login, mode: "enforced" }] }, "requests/0/mode", /./],
  [
    { requests: Array.from({ length: 17 }, (_, at) => ({ path: `/${at}`, rate: 1 })) },
    "requests",
    /16/,
  ],
  [
    {
      bytes: [
        { path: "/a", rate_bytes_s: 2_048 },
        { path: "/a", rate_bytes_s: 4_096 },
      ],
    },
    "bytes/1",
    /already at/,
  ],
])("%j", (limits, path, message) => {
  const judged = validate(limits);
  if (judged.ok) throw new Error("it is taken");
  expect(judged.errors.map((error) => error.path)).toEqual([`/domains/${domain}/limits/${path}`]);
  expect(judged.errors[0]?.message).toMatch(message);
});

test("a mode that is misspelt is told with what was meant", () => {
  const judged = validate({ requests: [{ ...login, mode: "enforced" }] });
  expect(judged).toMatchObject({
    errors: [{ allowed: ["enforce", "monitor"], did_you_mean: "enforce" }],
  });
});

test("methods that are none are told, and nothing is made of them", () => {
  const methods = [{ toString: 1 }, { toString: 2 }];
  const judged = validate({ requests: [{ ...login, methods }] });
  expect(judged).toMatchObject({ ok: false });
});

test("rules of a newer release that say the same without what this one does not know count once", () => {
  const requests = [login, { ...login, by: "session" }];
  const content = JSON.stringify({ domains: { [domain]: { limits: { requests } } } });
  const taken = takeDevlove("devlove/1", content);
  if (!taken.ok) throw new Error(taken.reason);
  const { all } = compileLimits(effectiveDevlove(taken.devlove, domain, null));
  expect(all).toHaveLength(1);
});

test("whatever is taken can be counted by, and whatever cannot is refused", () => {
  const rule = fc.record(
    {
      path: fc.constantFrom("/**", "/a", "/a/*"),
      methods: fc.subarray(["GET", "POST", "PUT"]),
      rate: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 100_000 })),
      per_s: fc.oneof(fc.constantFrom(1, 60, 3_600), fc.integer({ min: 1, max: 86_400 })),
      burst: fc.integer({ min: 1, max: 10_000 }),
      mode: fc.constantFrom("enforce", "monitor"),
    },
    { requiredKeys: ["path", "rate"] },
  );
  let taken = 0;
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 4 }), (requests) => {
      const judged = validate({ requests });
      const within = requests.map(({ rate, per_s: perS = 1, burst = Math.min(rate, 10_000) }) =>
        rate / perS <= 1_000 && (burst * perS) / rate <= 86_400); // prettier-ignore
      if (!judged.ok) {
        const faults = judged.errors.map(({ message }) => message);
        expect(within.includes(false) || faults.every((one) => one.includes("says the same"))).toBe(
          true,
        );
        return;
      }
      taken++;
      expect(within).not.toContain(false);
      const { all } = compileLimits(effectiveDevlove(judged.devlove, domain, null));
      expect(all).toHaveLength(requests.length);
      for (const { pace } of all) {
        expect(pace.interval).toBeGreaterThanOrEqual(1_000);
        expect(pace.tolerance).toBeLessThan(2 ** 25);
      }
    }),
    { numRuns: 500 },
  );
  expect(taken).toBeGreaterThan(50);
});
