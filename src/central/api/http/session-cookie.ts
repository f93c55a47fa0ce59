// The session of a browser: a token in a cookie that only this origin gets, and what a request with it must show so
// that no other site can make it (cross-site request forgery).

import type { IncomingHttpHeaders } from "node:http";

/** `__Host-`: browsers take it over TLS only, for this host alone and every path (RFC 6265bis, section 4.1.3.2). */
const cookieName = "__Host-accel-session";
/** A header that other sites cannot send without being asked first (Fetch, CORS-safelisted request headers). */
export const consoleHeader = "x-accel-console";

export type CookieCredentials =
  | { readonly kind: "token"; readonly text: string }
  /** There is a session, and the request may have been made by another site. */
  | { readonly kind: "doubtful"; readonly why: string };

/** Whether the page of another site made the request, as its browser says; undefined where none says so. */
export function isOfOtherSite(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  return site !== undefined && site !== "same-origin";
}

/** Returns the token of a request's session. Undefined if it has none. */
export function sessionOf(
  method: string,
  headers: IncomingHttpHeaders,
): CookieCredentials | undefined {
  const text = cookieOf(headers.cookie ?? "");
  if (text === undefined) return undefined;
  if (headers["sec-fetch-site"] !== "same-origin")
    return {
      kind: "doubtful",
      why: "a session counts for requests of its own pages only (Sec-Fetch-Site: same-origin)",
    };
  const isReading = method === "GET" || method === "HEAD";
  if (!isReading && headers[consoleHeader] === undefined)
    return { kind: "doubtful", why: "a change by a session needs the header X-Accel-Console" };
  return { kind: "token", text };
}

/** Returns the value of the cookie. Undefined if there is none, or two: only one can be from this host. */
function cookieOf(cookies: string): string | undefined {
  const values = cookies.split(";").flatMap((pair) => {
    // Blanks and tabs alone stand around a pair (RFC 6265bis, section 5.7).
    const [, name, value] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*(.*?)[ \t]*$/s.exec(pair) ?? [];
    return name === cookieName && value !== undefined ? [value] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}

const attributes = "Path=/; Secure; HttpOnly; SameSite=Strict";

/** Returns a `Set-Cookie` field that begins a session. */
export function beginCookie(token: string, seconds: number): string {
  return `${cookieName}=${token}; Max-Age=${seconds}; ${attributes}`;
}

/** A `Set-Cookie` field that ends a session in the browser. */
export const endCookie = `${cookieName}=; Max-Age=0; ${attributes}`;
