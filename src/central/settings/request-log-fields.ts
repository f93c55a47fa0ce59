// The keys of central's settings about where request logs are, if not in files: a part of the table in fields.ts.

import { oneOf, textField } from "../../base/settings-fields.ts";
import type { FieldTable } from "../../base/settings.ts";
import { isLocalStore, isStoreUrl, parseDatabaseUrl } from "./store-fields.ts";

const needsUrl =
  (key: string) =>
  (settings: Readonly<Record<string, unknown>>): string | undefined =>
    settings[key] !== undefined && settings["request_logs.url"] === undefined
      ? "needs `request_logs.url`"
      : undefined;

export const requestLogFields = {
  "request_logs.url": {
    doc: "The PostgreSQL (15 or later) database, of its own, that holds request logs instead of files in the state directory: written as `store.url`. docs/operations/cluster.md says what the server must be, and what becomes of the files.",
    optional: true,
    example: "postgres://accel@db.example.com:5432/accel_logs",
    parse: (raw: unknown) => parseDatabaseUrl(raw, "request_logs"),
    conflict: (settings) =>
      isSameDatabase(settings["request_logs.url"], settings["store.url"])
        ? "must be another database than `store.url`: request logs would fill the one that everything waits for"
        : undefined,
  },
  "request_logs.password_file": {
    doc: "The file with the password for the PostgreSQL of request logs, readable by this user only. It is read at each connection.",
    optional: true,
    example: "/etc/accel-central/request-logs.password",
    parse: textField(/^\//, "an absolute path"),
    conflict: needsUrl("request_logs.password_file"),
  },
  "request_logs.tls": {
    doc: "How the connections to the PostgreSQL of request logs are encrypted; as `store.tls`.",
    fallback: "verify-full",
    parse: oneOf("verify-full", "none"),
    conflict: (settings) =>
      isStoreUrl(settings["request_logs.url"]) &&
      settings["request_logs.tls"] === "none" &&
      !isLocalStore(settings["request_logs.url"])
        ? "must be verify-full for a server that is not on this host"
        : undefined,
  },
  "request_logs.ca_file": {
    doc: "The certificate authority (PEM) of the certificate of the PostgreSQL of request logs, where it is no public one.",
    optional: true,
    example: "/etc/accel-central/request-logs-ca.pem",
    parse: textField(/^\//, "an absolute path"),
    conflict: needsUrl("request_logs.ca_file"),
  },
} as const satisfies FieldTable;

function isSameDatabase(one: unknown, other: unknown): boolean {
  return (
    isStoreUrl(one) &&
    isStoreUrl(other) &&
    one.host === other.host &&
    one.port === other.port &&
    one.database === other.database
  );
}
