// Central's settings file: one table of keys, from which the reader, its errors and `config/central.yaml` come.

import { join } from "node:path";
import { logLevels } from "../../base/log.ts";
import {
  duration,
  flagField,
  httpUrl,
  integer,
  listenAddress,
  listOf,
  mapOf,
  oneOf,
  size,
  textField,
} from "../../base/settings-fields.ts";
import {
  renderSettings,
  type FieldTable,
  type Parsed,
  type SettingsRead,
} from "../../base/settings.ts";
import { parseRange } from "../../core/addresses/ip.ts";
import { noticeFields, noticeLimitFields } from "./notice-fields.ts";

function ipRange(raw: unknown): Parsed<string> {
  const parsed = parseRange(String(raw));
  return parsed.ok ? { ok: true, value: String(raw) } : { ok: false, reason: parsed.reason };
}

export const centralFields = {
  listen: {
    doc: "Where the customer API, the agents' side and the metrics are served: host:port. Put a TLS proxy in front of anything but loopback.",
    fallback: "127.0.0.1:8000",
    parse: listenAddress(),
  },
  base_url: {
    doc: "How customers and agents reach this service from outside.",
    fallback: "http://127.0.0.1:8000",
    parse: httpUrl(),
  },
  state_dir: {
    doc: "The store, the logs and the blobs. One process at a time.",
    fallback: "/var/lib/accel-central",
    parse: textField(/^\//, "an absolute path"),
  },
  key_file: {
    doc: "The key that secrets in the store are sealed with: 64 hex characters. Keep a copy apart from the store's backups. Without this key it is `central.key` in the state directory, made at the first start.",
    optional: true,
    example: "/etc/accel-central/central.key",
    parse: textField(/^\//, "an absolute path"),
  },
  log_level: {
    doc: `How much the program tells of itself: ${logLevels.join(", ")}.`,
    fallback: "info",
    live: true,
    parse: oneOf(...logLevels),
  },
  trusted_proxies: {
    doc: "Addresses and ranges whose X-Forwarded-For is believed.",
    fallback: [],
    parse: listOf(ipRange),
  },
  "logs.retention_age": {
    doc: "Request logs older than this are removed, by days.",
    fallback: "30d",
    parse: duration("1d"),
  },
  "logs.retention_size": {
    doc: "And the oldest days, when all request logs together are larger than this.",
    fallback: "20GiB",
    parse: size("64MiB"),
  },
  "limits.trials_per_address": {
    doc: "Trial users that one address may start in an hour.",
    fallback: 30,
    parse: integer(1, 1_000_000),
  },
  "limits.trials_total": {
    doc: "Trial users that may be started in an hour in total.",
    fallback: 1_000,
    parse: integer(1, 10_000_000),
  },
  "limits.marks_per_second": {
    doc: "Bot marks and removals a second that one customer may keep up. Of a custom range each ten elements weigh as one.",
    fallback: 200,
    parse: integer(1, 100_000),
  },
  "limits.marks_burst": {
    doc: "Bot marks and removals that one customer may send at once.",
    fallback: 20_000,
    parse: integer(1, 10_000_000),
  },
  "limits.bot_elements": {
    doc: "Addresses and ranges that one customer may attach to bots in all, through the API.",
    fallback: 1_000_000,
    parse: integer(1, 100_000_000),
  },
  ...noticeLimitFields,
  "package.size_max": {
    doc: "The largest wheel that can be uploaded.",
    fallback: "512MiB",
    parse: size("1MiB", "2GiB"),
  },
  "package.bootstrapper_download_url": {
    doc: "Where the bootstrapper is to be had, as customers are told.",
    optional: true,
    example: "https://downloads.example.com/bootstrapper.sh",
    parse: httpUrl(),
  },
  "package.versions": {
    doc: "Versions of the other components. That of accel_pack is the newest one that was uploaded.",
    optional: true,
    example: { bootstrapper: "1.4.0", base_python: "3.13.1" },
    parse: mapOf(textField()),
  },
  "package.images": {
    doc: "Container images by component.",
    optional: true,
    example: { base_python: "images.example.com/base-python:3.13.1" },
    parse: mapOf(textField()),
  },
  "audit.retention_age": {
    doc: "Lines of the audit trail older than this are removed.",
    fallback: "400d",
    parse: duration("1d"),
  },
  "devlove.other_loopback_names": {
    doc: "Whether backends may be names of another host's loopback, such as host.docker.internal.",
    fallback: false,
    parse: flagField(),
  },
  ...noticeFields,
} as const satisfies FieldTable;

export type CentralSettings = Extract<
  SettingsRead<typeof centralFields>,
  { readonly ok: true }
>["settings"];

export function keyFileOf(settings: CentralSettings): string {
  return settings.key_file ?? join(settings.state_dir, "central.key");
}

/** What stands in `config/central.yaml`. */
export function centralDefaults(): string {
  return renderSettings(
    "accel-central: every key with its default. Keys left out have the value shown here.",
    centralFields,
  );
}
