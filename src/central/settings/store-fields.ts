// The keys of central's settings about where its store is: a part of the table in fields.ts.

import { isIP } from "node:net";
import { integer, listOf, oneOf, textField } from "../../base/settings-fields.ts";
import type { FieldTable, Parsed } from "../../base/settings.ts";
import { refusedKeys } from "./refused-keys.ts";

/** Where a PostgreSQL is. The password is a key of its own. */
export type StoreUrl = {
  /** A name, an address, or the directory of the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
};

const form = "must be postgres://user@host:5432/database";

export const parseStoreUrl = (raw: unknown): Parsed<StoreUrl> => parseDatabaseUrl(raw, "store");

/** Parses `postgres://user@host[:5432]/database[?host=/directory of the socket]`. What it refuses is not repeated: it may hold a password. */
export function parseDatabaseUrl(
  raw: unknown,
  section: "store" | "request_logs",
): Parsed<StoreUrl> {
  const no = (reason: string): Parsed<StoreUrl> => ({ ok: false, reason, isSecret: true });
  if (typeof raw !== "string" || !/^postgres(?:ql)?:\/\//.test(raw) || !URL.canParse(raw))
    return no(form);
  const url = new URL(raw);
  if (url.password !== "")
    return no(`${form}; the password goes into a file, which \`${section}.password_file\` names`);
  const others = [...url.searchParams.keys()].filter((key) => key !== "host");
  if (others.length > 0)
    return no(`${form}; \`${others[0]}\` cannot stand in it (TLS is \`${section}.tls\`)`);
  const socket = url.searchParams.get("host");
  if (socket !== null && !socket.startsWith("/"))
    return no(`${form}; \`?host=\` names the directory of a socket, such as /run/postgresql`);
  const [user, database] = [decoded(url.username), decoded(url.pathname.slice(1))];
  if (!user || !database || database.includes("/") || url.hash !== "") return no(form);
  const host = socket ?? url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (host === "") return no(form);
  return { ok: true, value: { host, port: Number(url.port || 5432), database, user } };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export const isStoreUrl = (value: unknown): value is StoreUrl =>
  typeof value === "object" && value !== null && "host" in value;

/** Whether nothing of the connection leaves this host. */
export function isLocalStore({ host }: StoreUrl): boolean {
  return host.startsWith("/") || isLoopbackHost(host);
}

/** `host`: a name, or an address without brackets. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || (isIP(host) > 0 && (host === "::1" || host.startsWith("127.")));
}

const needsUrl =
  (key: string) =>
  (settings: Readonly<Record<string, unknown>>): string | undefined =>
    settings[key] !== undefined && settings["store.url"] === undefined
      ? "needs `store.url`"
      : undefined;

export const storeFields = {
  "store.url": {
    doc: "The PostgreSQL (15 or later) that holds the store, instead of `central.db` in the state directory: postgres://user@host:5432/database, for a socket on this host postgres://user@localhost/database?host=/run/postgresql. docs/operations/cluster.md says what the server must be; `accel-central migrate` brings a store there.",
    optional: true,
    example: "postgres://accel@db.example.com:5432/accel",
    parse: parseStoreUrl,
  },
  "store.password_file": {
    doc: "The file with the password for PostgreSQL, readable by this user only. It is read at each connection.",
    optional: true,
    example: "/etc/accel-central/store.password",
    parse: textField(/^\//, "an absolute path"),
    conflict: needsUrl("store.password_file"),
  },
  "store.tls": {
    doc: "How the connection to PostgreSQL is encrypted: `verify-full` with a certificate of this very host, `none` not at all (for a server on this host; a socket is never encrypted).",
    fallback: "verify-full",
    parse: oneOf("verify-full", "none"),
    conflict: (settings) =>
      isStoreUrl(settings["store.url"]) &&
      settings["store.tls"] === "none" &&
      !isLocalStore(settings["store.url"])
        ? "must be verify-full for a server that is not on this host"
        : undefined,
  },
  "store.ca_file": {
    doc: "The certificate authority (PEM) of PostgreSQL's certificate, where it is no public one.",
    optional: true,
    example: "/etc/accel-central/store-ca.pem",
    parse: textField(/^\//, "an absolute path"),
    conflict: needsUrl("store.ca_file"),
  },
  "store.connections": {
    doc: "The most connections to PostgreSQL for changes. Up to eight more are opened for long reads, for migrations, to hold the store, and for the word between several centrals.",
    fallback: 10,
    parse: integer(2, 200),
  },
  "store.instances": {
    doc: "How many centrals work on the store: `one` alone, where a second one is refused, or `many` equal ones behind a load balancer. `many` needs `store.url`, the same `key_file` on each, and everything shared that a state directory holds; `accel-central check` says what is not.",
    fallback: "one",
    parse: oneOf("one", "many"),
    conflict: (settings) => {
      if (settings["store.instances"] !== "many") return undefined;
      if (settings["store.url"] === undefined) return "many needs `store.url`";
      return settings["key_file"] === undefined ? "many needs `key_file`" : undefined;
    },
  },
  "store.may_differ": {
    doc: `Which of ${refusedKeys.map((key) => `\`${key}\``).join(", ")} may be another at another central of the store, while it is changed on one after the other: else a central that comes with another one is refused. It holds for both if one of two says it.`,
    fallback: [],
    example: ["base_url"],
    parse: listOf(oneOf(...refusedKeys)),
  },
} as const satisfies FieldTable;
