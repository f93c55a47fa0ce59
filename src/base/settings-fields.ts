// The kinds of value a settings field can have. Sizes and times are written with units ("512MiB", "60s"), never as bare numbers.

import type { Parsed, Refusal } from "./settings.ts";

type Parse<T> = (raw: unknown) => Parsed<T>;

const no = (reason: string): { ok: false; reason: string } => ({ ok: false, reason });
const within = (part: string, refusal: Refusal): Refusal => ({
  ...refusal,
  reason: `${part} ${refusal.reason}`,
});
const yes = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });

export function textField(pattern?: RegExp, what = "a text"): Parse<string> {
  return (raw) =>
    typeof raw === "string" && raw !== "" && (pattern === undefined || pattern.test(raw))
      ? yes(raw)
      : no(`must be ${what}`);
}

export function flagField(): Parse<boolean> {
  return (raw) => (typeof raw === "boolean" ? yes(raw) : no("must be true or false"));
}

export function integer(least: number, most: number): Parse<number> {
  return (raw) =>
    Number.isSafeInteger(raw) && Number(raw) >= least && Number(raw) <= most
      ? yes(Number(raw))
      : no(`must be an integer from ${least} to ${most}`);
}

export function oneOf<const T extends string>(...allowed: readonly T[]): Parse<T> {
  return (raw) => {
    const found = allowed.find((value) => value === raw);
    return found === undefined ? no(`must be one of ${allowed.join(", ")}`) : yes(found);
  };
}

/**
 * The least and the most of each field: minute, hour, day of the month, month, day of the week (0 and 7 are
 * Sunday).
 */
const cronRanges: readonly (readonly [number, number])[] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
];

/** Accepts five fields of cron with numbers, lists, ranges and steps; or `off`. */
export function cronTimes(): Parse<string> {
  const isNumber = (text: string, [least, most]: readonly [number, number]): boolean =>
    /^\d{1,2}$/.test(text) && Number(text) >= least && Number(text) <= most;
  const isPart = (part: string, range: readonly [number, number]): boolean => {
    const [span = "", step, ...rest] = part.split("/");
    if (rest.length > 0 || (step !== undefined && !/^[1-9]\d?$/.test(step))) return false;
    if (span === "*") return true;
    const [first = "", last, ...more] = span.split("-");
    if (more.length > 0 || !isNumber(first, range)) return false;
    return last === undefined || (isNumber(last, range) && Number(last) >= Number(first));
  };
  return (raw) => {
    if (raw === "off") return yes("off");
    const fields = typeof raw === "string" ? raw.trim().split(/ +/) : [];
    const isRight =
      fields.length === cronRanges.length &&
      cronRanges.every((range, at) =>
        (fields[at] ?? "").split(",").every((part) => isPart(part, range)),
      );
    return isRight
      ? yes(fields.join(" "))
      : no('must be off, or five fields of cron such as "17 2 * * *" (02:17 every day)');
  };
}

const timeUnitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Accepts "250ms", "60s", "5min", "2h", "30d"; the value is in milliseconds. */
export function duration(least = "0s", most = "3650d"): Parse<number> {
  const read = (raw: unknown): number | undefined => {
    const match =
      typeof raw === "string" ? /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|min|h|d)$/.exec(raw) : null;
    return match === null
      ? undefined
      : Math.round(Number(match[1]) * (timeUnitsMs[match[2] ?? ""] ?? 0));
  };
  const bounds = [read(least) ?? 0, read(most) ?? 0] as const;
  return (raw) => {
    const ms = read(raw);
    return ms !== undefined && ms >= bounds[0] && ms <= bounds[1]
      ? yes(ms)
      : no(`must be a time from ${least} to ${most} with a unit (ms, s, min, h, d)`);
  };
}

const sizeUnits: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Accepts "64MiB"; the value is in bytes. */
export function size(least = "0B", most = "1024TiB"): Parse<number> {
  const read = (raw: unknown): number | undefined => {
    const match = typeof raw === "string" ? /^(\d{1,12})(B|KiB|MiB|GiB|TiB)$/.exec(raw) : null;
    return match === null ? undefined : Number(match[1]) * (sizeUnits[match[2] ?? ""] ?? 0);
  };
  const bounds = [read(least) ?? 0, read(most) ?? 0] as const;
  return (raw) => {
    const bytes = read(raw);
    return bytes !== undefined && bytes >= bounds[0] && bytes <= bounds[1]
      ? yes(bytes)
      : no(`must be a size from ${least} to ${most} with a unit (B, KiB, MiB, GiB, TiB)`);
  };
}

export type ListenAddress = { readonly host: string; readonly port: number };

/** As the settings say it, and URLs: an IPv6 address stands in brackets. */
export function listenText({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Accepts "127.0.0.1:8080", "[::1]:8080"; port 0 takes a free one. */
export function listenAddress(): Parse<ListenAddress> {
  return (raw) => {
    const match =
      typeof raw === "string"
        ? /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(raw)
        : null;
    const port = Number(match?.[3]);
    return match !== null && port <= 65_535
      ? yes({ host: match[1] ?? match[2] ?? "", port })
      : no('must be "host:port"');
  };
}

/** Accepts http or https without credentials, query or fragment; the value has no trailing slash. */
export function httpUrl(): Parse<string> {
  return (raw) => {
    const reason = "must be an http or https URL without credentials, query and fragment";
    if (typeof raw !== "string" || !URL.canParse(raw)) return no(reason);
    const url = new URL(raw);
    const plain =
      ["http:", "https:"].includes(url.protocol) &&
      url.username + url.password === "" &&
      !/[?#]/.test(url.href);
    return plain ? yes(url.href.replace(/\/+$/, "")) : no(reason);
  };
}

/** Accepts a list whose items all parse; the reason names the first that does not. */
export function listOf<T>(item: Parse<T>, itemsMax = 10_000): Parse<readonly T[]> {
  return (raw) => {
    if (!Array.isArray(raw) || raw.length > itemsMax)
      return no(`must be a list of at most ${itemsMax}`);
    const values: T[] = [];
    for (const [i, one] of raw.entries()) {
      const parsed = item(one);
      if (!parsed.ok) return within(`item ${i + 1}`, parsed);
      values.push(parsed.value);
    }
    return yes(values);
  };
}

/** Accepts a mapping of names to values that all parse; the reason names the first that does not. */
export function mapOf<T>(item: Parse<T>, itemsMax = 1_000): Parse<Readonly<Record<string, T>>> {
  return (raw) => {
    if (raw === null || typeof raw !== "object" || Array.isArray(raw))
      return no("must be a mapping");
    const values: [string, T][] = [];
    for (const [name, one] of Object.entries(raw)) {
      const parsed = item(one);
      if (!parsed.ok) return within(name, parsed);
      values.push([name, parsed.value]);
    }
    return values.length > itemsMax
      ? no(`must have at most ${itemsMax} names`)
      : yes(Object.fromEntries(values));
  };
}

type Shape = Readonly<Record<string, { readonly parse: Parse<unknown>; readonly optional?: true }>>;
type Shaped<S extends Shape> = {
  readonly [K in keyof S]: S[K] extends { optional: true; parse: Parse<infer V> }
    ? V | undefined
    : S[K] extends { parse: Parse<infer V> }
      ? V
      : never;
};

/** Accepts a mapping with these keys and no others. */
export function record<const S extends Shape>(shape: S): Parse<Shaped<S>> {
  return (raw) => {
    if (raw === null || typeof raw !== "object" || Array.isArray(raw))
      return no(`must be a mapping with ${Object.keys(shape).join(", ")}`);
    const entries = new Map<string, unknown>(Object.entries(raw));
    const unknown = [...entries.keys()].find((key) => !Object.hasOwn(shape, key));
    if (unknown !== undefined)
      return no(`must not have the key ${unknown} (known: ${Object.keys(shape).join(", ")})`);
    const value: Record<string, unknown> = {};
    for (const [key, { parse, optional }] of Object.entries(shape)) {
      const one = entries.get(key);
      if (one === undefined && optional === true) continue;
      const parsed = parse(one);
      if (!parsed.ok && one === undefined)
        return { ...no(`${key} ${parsed.reason}, and is missing`), isMissing: true };
      if (!parsed.ok) return within(key, parsed);
      value[key] = parsed.value;
    }
    // Every member was parsed by its own parser above.
    return yes(value as Shaped<S>);
  };
}
