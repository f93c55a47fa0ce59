// The request as an origin sees it: hop-by-hop fields end here, what is said about the visitor is ours alone to say.

import type { Scheme } from "../../../core/http/client-address.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import { cookieFields } from "../../../core/http/request-cookies.ts";
import {
  fieldValue,
  hopByHop,
  withConnection,
  type Field,
} from "../../../core/http/http-fields.ts";
import { pseudonym } from "../../../core/serving/request-check.ts";
import type { Exchange } from "../doors/exchange.ts";

/** The fields that are never believed from a visitor, or are said anew below. `Expect` was answered here. */
const replaced: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "expect",
  "forwarded",
  "proxy", // To CGI programs HTTP_PROXY, which is their proxy.
  "via",
  "x-accel-decision",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-ip",
]);

/**
 * The fields by which frameworks and servers make another page, another host or another method, though
 * neither the key nor, mostly, `Vary` knows of them: one visitor's value would be in the page that others
 * get.
 */
const unkeyed: ReadonlySet<string> = new Set([
  "front-end-https",
  "true-client-ip",
  "x-forwarded-path",
  "x-forwarded-protocol",
  "x-forwarded-scheme",
  "x-forwarded-ssl",
  "x-host",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-middleware-subrequest",
  "x-original-host",
  "x-original-url",
  "x-rewrite-url",
  "x-url-scheme",
]);

/** What of a visitor's fields no origin is told as it stands, and what is not told where others may get the answer. */
const untold: ReadonlySet<string> = new Set([...hopByHop, ...replaced]);
export const untoldWhereShared: ReadonlySet<string> = new Set([...untold, ...unkeyed]);

/** `dropped`: what is left out, the untold among it. */
export function originFields(
  exchange: Exchange,
  host: string,
  backend: BackendSettings,
  dropped: ReadonlySet<string> = untold,
): readonly Field[] {
  const { fields, client, request } = exchange;
  const asked = askedHost(exchange, host);
  const via = fieldValue(fields, "via");
  const told: Field[] = [["Host", backend.host === "preserve" ? asked : backend.host]];
  const names = withConnection(fields, dropped);
  for (const field of fields)
    if (!names.has(field[0].toLowerCase()) && isReadAsWritten(field)) told.push(field);
  told.push(
    ["X-Forwarded-For", client?.forwardedFor ?? "unknown"],
    ["X-Forwarded-Proto", visitorScheme(exchange)],
    ["X-Forwarded-Host", asked],
    ["Via", `${via === undefined ? "" : `${via}, `}${request.httpVersion} ${pseudonym}`],
  );
  return told;
}

/** The fields by which a connection is taken over. */
const ofUpgrade: ReadonlySet<string> = new Set(["connection", "upgrade"]);

/** Returns the fields of a request for another protocol: Connection and Upgrade go on as the visitor sent them. */
export function upgradeFields(
  exchange: Exchange,
  host: string,
  backend: BackendSettings,
): readonly Field[] {
  const sent = exchange.fields.filter(([name]) => ofUpgrade.has(name.toLowerCase()));
  return [...originFields(exchange, host, backend), ...sent];
}

/** Returns whether an origin is told every value of this field as a visitor sends it; `name` in lower case. */
export function isToldAsSent(name: string): boolean {
  return !name.includes("_") && !notAsSent.has(name);
}

/** What is left out, said anew or told otherwise; `close` where Connection names it. */
const notAsSent: ReadonlySet<string> = new Set([
  ...replaced,
  ...unkeyed,
  ...cookieFields,
  ...hopByHop,
  "accept-encoding",
  "close",
  "if-modified-since",
  "if-none-match",
]);

/** CGI, WSGI and PHP read `X_Forwarded_Host` as X-Forwarded-Host; nginx drops such names, too. */
const isReadAsWritten = ([name]: Field): boolean => !name.includes("_");

/** What says where a visitor asked. */
export type AskedAt = {
  readonly client: Exchange["client"];
  readonly authority: string;
  readonly connection: Pick<Exchange["connection"], "port">;
};

/** Returns the scheme of the visitor's connection, or the one that a trusted proxy states. */
export function visitorScheme({ client }: Pick<Exchange, "client">): Scheme {
  return client?.scheme ?? "http";
}

/**
 * Scheme and port are parts of what was asked for (RFC 9111 §2) beside the name, and an origin's links are made of them: what a stored response always
 * varies by. `http` where the port is the scheme's own, else `http:8080`.
 */
export function askedScheme(exchange: AskedAt): string {
  const port = askedPort(exchange);
  const scheme = visitorScheme(exchange);
  return port === undefined ? scheme : `${scheme}:${port}`;
}

/**
 * The name that the request was routed by, with the port only where it is the one that was connected to: an origin builds links of it, and
 * what a visitor makes up must not get into an answer that others are served from the cache.
 */
function askedHost(exchange: Exchange, host: string): string {
  const port = askedPort(exchange);
  return port === undefined ? host : `${host}:${port}`;
}

/** The port that was asked for and connected to, where it is not its scheme's own. */
export function askedPort(exchange: AskedAt): number | undefined {
  const { authority, connection } = exchange;
  const usual = visitorScheme(exchange) === "https" ? 443 : 80;
  if (connection.port === usual || !authority.includes(":")) return undefined;
  const port = Number(/:(\d{1,5})$/.exec(authority)?.[1] ?? 0);
  return port === connection.port ? port : undefined;
}
