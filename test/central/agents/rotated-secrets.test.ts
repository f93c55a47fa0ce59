// The warning that names hosts that do not take a rotated secret16.

import { expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import {
  againMs,
  RotatedSecrets,
  secretsWarnedMax,
  secretsWatchedMax,
} from "../../../src/central/agents/rotated-secrets.ts";
import { parseName16, type Name16 } from "../../../src/core/ids.ts";

function rig() {
  const health = new Health(() => new Date(0));
  const logged: string[] = [];
  const tell = (_: object, text: string): void => void logged.push(text);
  const secrets = new RotatedSecrets({ health, log: { warn: tell, info: tell } as never });
  return {
    logged,
    /** A sign-in by the secret before, whose grace ends then; without an end: by the current one. Returns the addresses that are warned of. */
    signIn: (nowMs: number, graceEndsMs?: number, address = "192.0.2.1"): readonly string[] => {
      const graceEnds = graceEndsMs === undefined ? undefined : new Date(graceEndsMs).toISOString();
      secrets.take({ name16: name(), address, graceEnds }, nowMs);
      return health.list().map(({ text }) => / at (\S+) /.exec(text)?.[1] ?? text);
    },
  };
}

function name(): Name16 {
  const parsed = parseName16("0123456789abcdef");
  if (parsed === undefined) throw new Error("no name16");
  return parsed;
}

const day = 86_400_000;

test("a host that signs in with the one before, and then with the new one, is fine", () => {
  const { signIn } = rig();
  expect(signIn(0, day)).toEqual([]);
  expect(signIn(1_000)).toEqual([]);
  expect(signIn(againMs, day)).toEqual([]);
  expect(signIn(2 * againMs - 1, day)).toEqual([]);
});

test("one that comes again with the one before is warned of, until it has the new one", () => {
  const { signIn, logged } = rig();
  signIn(0, day);
  expect(signIn(againMs, day)).toEqual(["192.0.2.1"]);
  expect(signIn(againMs + 1, day)).toEqual(["192.0.2.1"]);
  expect(signIn(againMs, day, "192.0.2.2")).toEqual(["192.0.2.1"]);
  expect(signIn(againMs + 1, undefined, "192.0.2.2")).toEqual(["192.0.2.1"]);
  expect(signIn(againMs + 2)).toEqual([]);
  expect(logged).toEqual([expect.stringContaining("at 192.0.2.1 signs in"), "settled"]);
});

test("the end of the grace ends it, whoever signs in then; another rotation begins anew", () => {
  const { signIn } = rig();
  signIn(0, day);
  expect(signIn(againMs, day)).toHaveLength(1);
  expect(signIn(day - 1, undefined, "192.0.2.9")).toHaveLength(1);
  expect(signIn(day, undefined, "192.0.2.9")).toEqual([]);
  const other = rig();
  other.signIn(0, day);
  expect(other.signIn(againMs, 2 * day)).toEqual([]);
  expect(other.signIn(2 * againMs, 2 * day)).toHaveLength(1);
});

test("however many there are, so many are watched and warned of; room is made by those that are over", () => {
  const { signIn } = rig();
  for (let no = 0; no < secretsWatchedMax; no++) signIn(0, day, `h${no}`);
  signIn(0, day, "late");
  for (let no = 0; no < secretsWatchedMax; no++) signIn(againMs, day, `h${no}`);
  expect(signIn(againMs, day, "late")).toHaveLength(secretsWarnedMax);
  signIn(againMs + 1, undefined, "h0");
  expect(signIn(againMs + 1, day, "h500")).toContain("h500");
  expect(signIn(againMs + 1, day, "late")).not.toContain("late");
  expect(signIn(2 * againMs + 1, day, "late")).toHaveLength(secretsWarnedMax);
  signIn(2 * againMs + 1, undefined, "h1");
  expect(signIn(2 * againMs + 1, day, "late")).toContain("late");
});
