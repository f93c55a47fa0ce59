// What several centrals at one store must have alike in their settings, told in digests, and how two of them are compared.

import { createHash } from "node:crypto";
import type { CentralSettings } from "./fields.ts";
import { isRefusedKey, type RefusedKey } from "./refused-keys.ts";

/**
 * `refused`: with another value a central would answer from another place, and may not join. `told`: answers or mails would differ a little; it is warned of, so that a value can be
 * changed on one after the other. `own`: what is of one host, and how it reaches what all share.
 */
type Likeness = "refused" | "told" | "own";

const likeness = {
  listen: "own",
  base_url: "refused",
  state_dir: "own",
  key_file: "own", // Its value is compared by its proof.
  "store.url": "own", // Whoever reads the other's row is at the same store.
  "store.password_file": "own",
  "store.tls": "own",
  "store.ca_file": "own",
  "store.connections": "own",
  "store.instances": "own",
  "store.may_differ": "own",
  "objects.s3.bucket": "refused",
  "objects.s3.endpoint": "refused",
  "objects.s3.region": "own",
  "objects.s3.prefix": "refused",
  "objects.s3.access_key_file": "own",
  "objects.s3.secret_key_file": "own",
  "objects.s3.ca_file": "own",
  "objects.s3.path_style": "own",
  "objects.delete_after": "told",
  log_level: "own",
  ca_file: "own",
  trusted_proxies: "own",
  "request_logs.url": "refused",
  "request_logs.password_file": "own",
  "request_logs.tls": "own",
  "request_logs.ca_file": "own",
  "logs.retention_age": "told",
  "logs.retention_size": "told",
  "analytics.max": "told",
  "bots.private_sources": "told",
  "limits.trials_per_address": "told",
  "limits.trials_total": "told",
  "limits.marks_per_second": "told",
  "limits.marks_burst": "told",
  "limits.bot_elements": "told",
  "limits.mails_per_address": "told",
  "limits.messages_per_customer": "told",
  "limits.recoveries_per_address": "told",
  "package.size_max": "told",
  "package.bootstrapper_download_url": "told",
  "package.versions": "told",
  "package.images": "told",
  "audit.retention_age": "told",
  "devlove.other_loopback_names": "told",
  "acme.ca_file": "own",
  "acme.private_addresses": "told",
  "acme.resolvers": "own",
  "acme.check_port": "told",
  "mail.server": "told",
  "mail.starttls": "told",
  "mail.user": "told",
  "mail.password_file": "own",
  "mail.from": "told",
  "mail.timeout": "told",
  "mail.keep": "told",
  "chat.private_hooks": "told",
  "chat.timeout": "told",
  "reports.time_zone": "told",
  "reports.at": "told",
  "reports.weekday": "told",
  "alerts.slow_response": "told",
  "alerts.slow_percent": "told",
  "alerts.slow_requests": "told",
  "alerts.after": "told",
  "alerts.resolved_after": "told",
} as const satisfies Readonly<Record<keyof CentralSettings, Likeness>>;

/** What a central tells the others of its settings. */
export type AlikeSettings = {
  /** By key; a digest says whether two are the same, and not what they are. */
  readonly digests: Readonly<Record<string, string>>;
  /** The keys in which another central may differ. */
  readonly mayDiffer: readonly string[];
};

/** Pure. Returns what is compared of these settings. */
export function alikeSettings(settings: CentralSettings): AlikeSettings {
  const digests = Object.entries(likeness)
    .filter(([, kind]) => kind !== "own")
    .map(([key]) => [key, digestOf(comparedText(settings, key))]);
  return { digests: Object.fromEntries(digests), mayDiffer: settings["store.may_differ"] };
}

/** Of a database the place counts, and not as whom it is entered. */
function comparedText(settings: CentralSettings, key: string): string {
  const given: Readonly<Record<string, unknown>> = settings;
  const logs = settings["request_logs.url"];
  if (key === "request_logs.url" && logs !== undefined)
    return `${logs.host}:${logs.port}/${logs.database}`;
  return JSON.stringify(given[key] ?? null);
}

const digestOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 16);

/** Pure. Returns the text for the store. */
export function alikeText({ digests, mayDiffer }: AlikeSettings): string {
  return JSON.stringify({ digests, may_differ: mayDiffer });
}

/** Pure. Returns what another central wrote; undefined for one of a release that wrote nothing, or what this one cannot read. */
export function readAlike(text: string | null): AlikeSettings | undefined {
  if (text === null) return undefined;
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof raw !== "object" || raw === null || !("digests" in raw)) return undefined;
  const { digests } = raw;
  if (typeof digests !== "object" || digests === null) return undefined;
  const may: unknown = "may_differ" in raw ? raw.may_differ : [];
  return {
    digests: Object.fromEntries(Object.entries(digests).map(([key, value]) => [key, `${value}`])),
    mayDiffer: Array.isArray(may) ? may.map(String) : [],
  };
}

/** In which keys two centrals differ. */
export type Differing = {
  /** By these the one that comes is refused. */
  readonly refused: readonly RefusedKey[];
  /** These may differ for a while, by the word of either of them or by what they are. */
  readonly told: readonly string[];
};

/** Pure. Compares what both tell: a key that one of two releases does not know says nothing. */
export function differingSettings(ours: AlikeSettings, theirs: AlikeSettings): Differing {
  const allowed = new Set([...ours.mayDiffer, ...theirs.mayDiffer]);
  const keys = Object.keys(ours.digests).filter(
    (key) => key in theirs.digests && theirs.digests[key] !== ours.digests[key],
  );
  const refused = keys.filter(isRefusedKey).filter((key) => !allowed.has(key));
  return { refused, told: keys.filter((key) => !refused.some((one) => one === key)) };
}

/** Pure. Names keys of the settings in a sentence. */
export const keysText = (keys: readonly string[]): string =>
  keys.map((key) => `\`${key}\``).join(", ");
