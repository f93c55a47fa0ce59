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
import { acmeFields } from "./acme-fields.ts";
import { noticeFields, noticeLimitFields } from "./notice-fields.ts";
import { objectsFields } from "./objects-fields.ts";
import { requestLogFields } from "./request-log-fields.ts";
import { storeFields } from "./store-fields.ts";

function ipRange(raw: unknown): Parsed<string> {
  const parsed = parseRange(String(raw));
  return parsed.ok ? { ok: true, value: String(raw) } : { ok: false, reason: parsed.reason };
}

export const centralFields = {
  listen: {
    doc: "The address (host:port) of the customer API, of the agents' side and of the metrics. Put a TLS proxy in front of anything but loopback.",
    fallback: "127.0.0.1:8000",
    parse: listenAddress(),
  },
  base_url: {
    doc: "The URL by which customers and agents reach this service from outside.",
    fallback: "http://127.0.0.1:8000",
    parse: httpUrl(),
  },
  state_dir: {
    doc: "The directory with the store, the logs and the blobs. Only one process at a time can use it.",
    fallback: "/var/lib/accel-central",
    parse: textField(/^\//, "an absolute path"),
  },
  key_file: {
    doc: "The file with the key that seals the secrets in the store: 64 hex characters. Keep a copy apart from the backups of the store. Without this setting the file is `central.key` in the state directory, which is made at the first start.",
    optional: true,
    example: "/etc/accel-central/central.key",
    parse: textField(/^\//, "an absolute path"),
  },
  ...storeFields,
  ...objectsFields,
  log_level: {
    doc: `How much the program logs: ${logLevels.join(", ")}.`,
    fallback: "info",
    live: true,
    parse: oneOf(...logLevels),
  },
  ca_file: {
    doc: "The certificate authority (PEM) that hosts need to trust for `base_url`, where it is no public one. Codes for `accel-agent join` carry its digest, and hosts that join are given it.",
    optional: true,
    example: "/etc/accel-central/ca.pem",
    parse: textField(/^\//, "an absolute path"),
  },
  trusted_proxies: {
    doc: "Addresses and ranges of the proxies whose X-Forwarded-For is trusted.",
    fallback: [],
    parse: listOf(ipRange),
  },
  ...requestLogFields,
  "logs.retention_age": {
    doc: "Request logs older than this are removed, one day at a time.",
    fallback: "30d",
    parse: duration("1d"),
  },
  "logs.retention_size": {
    doc: "When all request logs together are larger than this, the oldest days are removed.",
    fallback: "20GiB",
    parse: size("64MiB"),
  },
  "analytics.max": {
    doc: "The most room for numbers of requests (`analytics.db`). When they are larger, the finest and oldest go first: minutes, then hours, then days.",
    fallback: "2GiB",
    parse: size("16MiB"),
  },
  "bots.private_sources": {
    doc: "Whether lists of bots' addresses may be fetched from URLs that lead to private addresses. Customers could reach hosts of this network with it.",
    fallback: false,
    parse: flagField(),
  },
  "limits.trials_per_address": {
    doc: "How many trials one address may start in an hour.",
    fallback: 30,
    parse: integer(1, 1_000_000),
  },
  "limits.trials_total": {
    doc: "How many trials may be started in an hour in total.",
    fallback: 1_000,
    parse: integer(1, 10_000_000),
  },
  "limits.marks_per_second": {
    doc: "How many bot marks and removals a second one customer may send continuously. In a custom range every ten elements count as one.",
    fallback: 200,
    parse: integer(1, 100_000),
  },
  "limits.marks_burst": {
    doc: "How many bot marks and removals one customer may send at once.",
    fallback: 20_000,
    parse: integer(1, 10_000_000),
  },
  "limits.bot_elements": {
    doc: "How many addresses and ranges the bots of one customer may hold in all. An import by the operator may go beyond; the customer then adds nothing more.",
    fallback: 5_000_000,
    parse: integer(1, 100_000_000),
  },
  ...noticeLimitFields,
  "package.size_max": {
    doc: "The largest wheel that can be uploaded.",
    fallback: "512MiB",
    parse: size("1MiB", "2GiB"),
  },
  "package.bootstrapper_download_url": {
    doc: "The URL of the bootstrapper, as customers are told.",
    optional: true,
    example: "https://downloads.example.com/bootstrapper.sh",
    parse: httpUrl(),
  },
  "package.versions": {
    doc: "Versions of the other components. The version of accel_pack is the newest one that was uploaded.",
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
    doc: "Whether a backend may be a name of another host's loopback, such as host.docker.internal.",
    fallback: false,
    parse: flagField(),
  },
  ...acmeFields,
  ...noticeFields,
} as const satisfies FieldTable;

export type CentralSettings = Extract<
  SettingsRead<typeof centralFields>,
  { readonly ok: true }
>["settings"];

export function keyFileOf(settings: CentralSettings): string {
  return settings.key_file ?? join(settings.state_dir, "central.key");
}

/** Returns which backends a devlove may name. */
export function backendRules(settings: CentralSettings): {
  readonly otherLoopbackNamesAllowed: boolean;
} {
  return { otherLoopbackNamesAllowed: settings["devlove.other_loopback_names"] };
}

/** Returns the text of `config/central.yaml`. */
export function centralDefaults(): string {
  return renderSettings(
    "accel-central: every key with its default. Keys left out have the value shown here.",
    centralFields,
  );
}
