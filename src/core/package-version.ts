// Versions of Python packages (PEP 440): parsing, the normal form, the order that "newest" means.
//
// The pep440 library parses and orders what stands before `+`. Local parts are read here, because it takes
// words such as `0x10` and `12e4567` (the digest of a commit) for numbers there, so that different builds
// would be one version.

import { compare, explain } from "@renovatebot/pep440";

export type PackageVersion = {
  /** The normal form, with the zeros that were given: `1!2.0.0rc1.post2.dev3+local.1`. */
  readonly text: string;
  /** The same for equal versions: `1.0` and `1.0.0` are one. */
  readonly key: string;
  /** The part of the text before `+`. */
  readonly public: string;
  readonly local: readonly (number | string)[];
};

const charsMax = 128;
/** The largest number that is still exact. */
const numberMax = Number.MAX_SAFE_INTEGER;

/** Returns the version, or undefined if the text is none. */
export function parsePackageVersion(raw: string): PackageVersion | undefined {
  if (raw.length > charsMax) return undefined;
  const [, before, after] = /^([^+]*)(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/i.exec(raw) ?? [];
  const found = explain(before);
  if (found === null) return undefined;
  const local = (after?.toLowerCase().split(/[-_.]/) ?? []).map((part) =>
    /^\d+$/.test(part) ? Number(part) : part,
  );
  const { epoch, release, pre, post, dev, base_version: base } = found;
  const numbers = [epoch, ...release, pre?.[1], post, dev, ...local];
  if (numbers.some((one) => typeof one === "number" && one > numberMax)) return undefined;
  const rest = found.public.slice(base.length) + (local.length === 0 ? "" : `+${local.join(".")}`);
  return {
    text: base + rest,
    key: base.replace(/(?:\.0)+$/, "") + rest,
    public: found.public,
    local,
  };
}

/** Returns a negative number if `a` is older, 0 if both are the same version. */
export function comparePackageVersions(a: PackageVersion, b: PackageVersion): number {
  return compare(a.public, b.public) || compareLocal(a.local, b.local);
}

/**
 * Returns the oldest of these releases as it was given. A text that is no version counts only if there is no
 * version at all.
 */
export function oldestRelease(releases: readonly string[]): string | undefined {
  const parsed = releases.flatMap((release) => {
    const version = parsePackageVersion(release);
    return version === undefined ? [] : [{ release, version }];
  });
  const [oldest] = parsed.toSorted((a, b) => comparePackageVersions(a.version, b.version));
  return oldest?.release ?? releases[0];
}

/**
 * Returns whether a release is older than the newest one, or undefined if one of them is unknown or no
 * version.
 */
export function isBehind(
  release: string | null | undefined,
  newest: string | null | undefined,
): boolean | undefined {
  const [own, latest] = [parsePackageVersion(release ?? ""), parsePackageVersion(newest ?? "")];
  if (own === undefined || latest === undefined) return undefined;
  return comparePackageVersions(own, latest) < 0;
}

/** Compares local parts: numbers are above words, and a longer one is above its own beginning. */
function compareLocal(a: PackageVersion["local"], b: PackageVersion["local"]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const [x, y] = [a[at], b[at]];
    if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? -1 : 1;
    if (x === y) continue;
    if (typeof x === "number" && typeof y === "number") return x - y;
    if (typeof x !== typeof y) return typeof x === "number" ? 1 : -1;
    return x < y ? -1 : 1;
  }
  return 0;
}
