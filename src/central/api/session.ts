// `/session/`: a browser signs in with a token, or with name and password, and has a cookie from then on. The
// session is a token like any other: listed, revoked, and over when its time is up.

import { sha256Of } from "../../core/ids.ts";
import { gives, givesNothing, makes } from "../../wire/customer/operation.ts";
import { sessionShape, type ApiSession } from "../../wire/customer/session.ts";
import { endSession, endSessions, issueToken, type Actor } from "../store/people/tokens.ts";
import type { ResourceDeps } from "./deps.ts";
import { noContent, ok } from "./http/answer.ts";
import { forSignIn, forUsers, type Endpoint } from "./http/endpoint.ts";
import { beginCookie, endCookie } from "./http/session-cookie.ts";

const path = "/session/";
const sessionMaxS = 12 * 3_600;
/** As many browsers may be signed in by one user's password; the one that signed in first goes. */
const sessionsMax = 50;
const sessionName = "session of the console";
const tokenBytes = 32;

export function sessionEndpoints({ now, randomBytes }: ResourceDeps): readonly Endpoint[] {
  return [
    forSignIn({
      method: "POST",
      path,
      id: "createSession",
      summary:
        "Begin a session of a browser, with a token or with name and password; the cookie is for the console of this origin",
      gives: makes(sessionShape),
      refuses: [403],
      handle: async ({ actor, credentials, change }) => {
        const made = Buffer.from(randomBytes(tokenBytes)).toString("base64url");
        const atMs = now().getTime();
        const ends = new Date(atMs + sessionMaxS * 1_000).toISOString();
        const isByPassword = credentials.kind === "password";
        const token = isByPassword ? made : credentials.text;
        const whenExpires = isByPassword ? ends : actor.whenExpires;
        const leftS = whenExpires === null ? sessionMaxS : (Date.parse(whenExpires) - atMs) / 1_000;
        const cookie = beginCookie(token, Math.floor(Math.min(sessionMaxS, leftS)));
        return change(async (work) => {
          if (isByPassword) {
            await endSessions(work, actor.userId, sessionsMax - 1);
            await issueToken(work, actor.userId, sha256Of(made), {
              name: sessionName,
              role: actor.role,
              domains: actor.domains,
              whenExpires: ends,
              isSession: true,
            });
          }
          const body = sessionText({ ...actor, whenExpires });
          return { kind: "json", status: 201, body, headers: { "set-cookie": cookie } };
        });
      },
    }),
    forUsers({
      method: "GET",
      path,
      id: "getSession",
      needs: { role: "read", scope: "domain" },
      summary: "Read who asks, and what the token may do",
      gives: gives(sessionShape),
      handle: async ({ actor }) => ok(sessionText(actor)),
    }),
    forUsers({
      method: "DELETE",
      path,
      id: "deleteSession",
      needs: { role: "read", scope: "domain" },
      summary:
        "End the session; a token that was made for it is revoked, one that was brought stays in force",
      gives: givesNothing,
      handle: async ({ actor, change }) =>
        change(async (work) => {
          if (actor.isSession && actor.tokenId !== null) await endSession(work, actor.tokenId);
          return { ...noContent, headers: { "set-cookie": endCookie } };
        }),
    }),
  ];
}

function sessionText(actor: Actor): ApiSession {
  const { username, userId, customerId, role, domains, mayReadLogs, whenExpires } = actor;
  return {
    username,
    user_id: userId,
    customer_id: customerId,
    role,
    domains: domains === null ? null : [...domains],
    may_read_logs: mayReadLogs,
    when_expires: whenExpires,
  };
}
