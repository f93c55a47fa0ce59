// Versions of Python packages (PEP 440): parsing, the normal form, the order that "newest" means.

export type PackageVersion = {
  /** The normal form, with the zeros that were given: `1!2.0.0rc1.post2.dev3+local.1`. */
  readonly text: string;
  /** Equal for equal versions: `1.0` and `1.0.0` are one. */
  readonly key: string;
  readonly epoch: number;
  /** Without the zeros at the end, which say nothing. */
  readonly release: readonly number[];
  readonly pre: readonly ["a" | "b" | "rc", number] | undefined;
  readonly post: number | undefined;
  readonly dev: number | undefined;
  readonly local: readonly (number | string)[];
};

const charsMax = 128;
/** Larger numbers are no longer exact. */
const numberMax = Number.MAX_SAFE_INTEGER;

/** Appendix B of the PEP, without blanks around. */
const form =
  /^v?(?:(?<epoch>\d+)!)?(?<release>\d+(?:\.\d+)*)(?:[-_.]?(?<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?<preN>\d+)?)?(?<post>-(?<postImplicit>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?<postN>\d+)?)?(?<dev>[-_.]?dev[-_.]?(?<devN>\d+)?)?(?:\+(?<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/i;

const preNames: Readonly<Record<string, "a" | "b" | "rc">> = {
  a: "a",
  alpha: "a",
  b: "b",
  beta: "b",
  c: "rc",
  pre: "rc",
  preview: "rc",
  rc: "rc",
};

/** Undefined for what is no version. */
export function parsePackageVersion(raw: string): PackageVersion | undefined {
  const found = raw.length > charsMax ? undefined : form.exec(raw)?.groups;
  if (found === undefined) return undefined;
  const number = (text: string | undefined): number => Number(text ?? 0);
  const given = (found["release"] ?? "").split(".").map(Number);
  const preName = preNames[(found["pre"] ?? "").toLowerCase()];
  const local = (found["local"] ?? "")
    .toLowerCase()
    .split(/[-_.]/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const version = {
    epoch: number(found["epoch"]),
    release: given.slice(0, given.findLastIndex((part) => part !== 0) + 1),
    pre: preName === undefined ? undefined : ([preName, number(found["preN"])] as const),
    post: found["post"] === undefined ? undefined : number(found["postImplicit"] ?? found["postN"]),
    dev: found["dev"] === undefined ? undefined : number(found["devN"]),
    local,
  };
  const numbers = [version.epoch, ...given, version.pre?.[1], version.post, version.dev, ...local];
  if (numbers.some((one) => typeof one === "number" && one > numberMax)) return undefined;
  return { ...version, text: textOf(version, given), key: textOf(version, version.release) };
}

function textOf(
  { epoch, pre, post, dev, local }: Omit<PackageVersion, "text" | "key" | "release">,
  release: readonly number[],
): string {
  return [
    epoch === 0 ? "" : `${epoch}!`,
    release.length === 0 ? "0" : release.join("."),
    pre === undefined ? "" : pre.join(""),
    post === undefined ? "" : `.post${post}`,
    dev === undefined ? "" : `.dev${dev}`,
    local.length === 0 ? "" : `+${local.join(".")}`,
  ].join("");
}

/** Negative: `a` is older; 0: the same version. */
export function comparePackageVersions(a: PackageVersion, b: PackageVersion): number {
  return (
    a.epoch - b.epoch ||
    compareLists(a.release, b.release, 0) ||
    comparePre(a, b) ||
    (a.post ?? -1) - (b.post ?? -1) ||
    compareEnds(a.dev, b.dev) ||
    compareLocal(a.local, b.local)
  );
}

/** The oldest of these releases, as it was given; what is no version counts only where nothing else is given. */
export function oldestRelease(releases: readonly string[]): string | undefined {
  const parsed = releases.flatMap((release) => {
    const version = parsePackageVersion(release);
    return version === undefined ? [] : [{ release, version }];
  });
  const [oldest] = parsed.toSorted((a, b) => comparePackageVersions(a.version, b.version));
  return oldest?.release ?? releases[0];
}

/** Whether a release is older than the newest one; undefined where one of them is not known, or no version. */
export function isBehind(
  release: string | null | undefined,
  newest: string | undefined,
): boolean | undefined {
  const [own, latest] = [parsePackageVersion(release ?? ""), parsePackageVersion(newest ?? "")];
  if (own === undefined || latest === undefined) return undefined;
  return comparePackageVersions(own, latest) < 0;
}

const preOrder = { a: 0, b: 1, rc: 2 } as const;

/** A development release of the final one stands before its pre-releases, the final one after them. */
function comparePre(a: PackageVersion, b: PackageVersion): number {
  const rank = ({ pre, post, dev }: PackageVersion): number => {
    if (pre !== undefined) return preOrder[pre[0]];
    return post === undefined && dev !== undefined ? -1 : 3;
  };
  return rank(a) - rank(b) || (a.pre?.[1] ?? 0) - (b.pre?.[1] ?? 0);
}

/** Without the part is after all with it. */
function compareEnds(a: number | undefined, b: number | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return a - b;
}

function compareLists(a: readonly number[], b: readonly number[], missing: number): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? missing) - (b[at] ?? missing);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Numbers are above words, and what goes on is above what ends. */
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
