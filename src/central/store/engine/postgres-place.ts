// Where a store on PostgreSQL is, and how it is reached.

import type { ConnectionOptions } from "node:tls";

export type PostgresPlace = {
  /** A name or an address; a path that begins with a slash is the directory of the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Asked at each connection, so that a new password counts from the next one on. Undefined: none is sent. Throws FILE_UNUSABLE. */
  readonly password: () => string | undefined;
  /** False for a connection that is not encrypted. */
  readonly tls: false | { readonly ca: string | undefined };
  /** The most connections of the pool. */
  readonly connections: number;
};

/** Names the place in messages; it holds no secret. */
export function placeText({ host, port, database, user }: PostgresPlace): string {
  const at = host.startsWith("/") ? `${host}:${port}` : `${bracketed(host)}:${port}`;
  return `postgres://${user}@${at}/${database}`;
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

type CheckIdentity = NonNullable<ConnectionOptions["checkServerIdentity"]>;

/** `verify-full` in the words of PostgreSQL: the certificate is of an authority that we trust, and of this very host. */
export function tlsOptions(
  { host, tls }: Pick<PostgresPlace, "host" | "tls">,
  check: CheckIdentity,
): false | ConnectionOptions {
  if (tls === false || host.startsWith("/")) return false;
  return {
    ...(tls.ca !== undefined && { ca: tls.ca }),
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    // Node compares an address with "localhost" where no name is sent.
    checkServerIdentity: (_, certificate) => check(host, certificate),
  };
}
