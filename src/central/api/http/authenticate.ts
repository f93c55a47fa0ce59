// Tells who asks: by a token, or by name and password. Failed attempts are limited by address, and those with
// a password by name too.
//
// Others' failures do not shut out those who proved themselves from the same address before: several may
// share an office's address, and anyone may know a name.

import type { IncomingMessage } from "node:http";
import { addressGroups } from "../../../core/addresses/address-group.ts";
import { createAddressLimit } from "./address-limit.ts";
import { forbidden, problem, tooMany, type ProblemAnswer } from "./answer.ts";
import type { Brought, Endpoint } from "./endpoint.ts";
import { hashPassword, verifyPassword } from "../password.ts";
import { PasswordTurns } from "./password-turns.ts";
import { endCookie, isOfOtherSite, sessionOf } from "./session-cookie.ts";
import type { ResourceDeps } from "../deps.ts";
import type { Actor } from "../../store/people/tokens.ts";
import type { Transactions } from "../../store/engine/customer-store.ts";
import { sha256Of } from "../../../core/ids.ts";
import { noteTokenUse, userByToken } from "../../store/people/tokens.ts";
import { userCredentials } from "../../store/people/users.ts";
import type { Work } from "../../store/engine/work.ts";

export type Authenticated =
  | {
      readonly ok: true;
      readonly actor: Actor | undefined;
      readonly credentials: Brought | undefined;
    }
  | { readonly ok: false; readonly answer: ProblemAnswer };

export type Authenticate = (
  auth: Endpoint["auth"],
  request: Pick<IncomingMessage, "method" | "headers">,
  address: string,
) => Promise<Authenticated>;

const keysMax = 20_000; // Some 4 MB of buckets.
const wrongTokens = { burst: 100, perSecond: 1, keysMax };
const wrongPasswords = { burst: 20, perSecond: 1 / 6, keysMax };
const waitForTurnMs = 2_000;

type Deps = Pick<ResourceDeps, "rateLimit" | "randomBytes"> & {
  readonly store: Transactions;
  /** Called when the use of a token could not be noted. */
  readonly onFailure: (error: unknown) => void;
};

export function createAuthenticate(deps: Deps): Authenticate {
  const byToken = tokenAuthentication(deps);
  const byPassword = passwordAuthentication(deps);
  return async (auth, { method = "", headers }, address) => {
    const header = headers.authorization;
    switch (auth) {
      case "none":
        return { ok: true, actor: undefined, credentials: undefined };
      case "token": {
        const session = header === undefined ? sessionOf(method, headers) : undefined;
        if (session?.kind === "doubtful") return refused(forbidden(session.why));
        if (session !== undefined) return byToken(session.text, address, "cookie");
        return byToken(tokenOf(header), address, "header");
      }
      case "basic":
        return publisher(await byPassword(header, address));
      case "sign-in":
        if (isOfOtherSite(headers))
          return refused(forbidden("a session is begun by the console's own page"));
        return /^basic /i.test(header ?? "")
          ? signedIn(await byPassword(header, address))
          : byToken(tokenOf(header), address, "header");
      default:
        return auth satisfies never;
    }
  };
}

/** Who came with a right password, and whether the operator lets it publish. */
type ByPassword =
  | { readonly ok: true; readonly actor: Actor; readonly mayPublish: boolean }
  | { readonly ok: false; readonly answer: ProblemAnswer };

function publisher(by: ByPassword): Authenticated {
  if (!by.ok) return by;
  return by.mayPublish
    ? { ok: true, actor: by.actor, credentials: { kind: "password" } }
    : refused(forbidden("the operator does not let this user publish packages"));
}

/** A browser that is told to ask for a password would open a window of its own, so it is not told. */
function signedIn(by: ByPassword): Authenticated {
  if (by.ok) return { ok: true, actor: by.actor, credentials: { kind: "password" } };
  return by.answer.status === 401
    ? refused(unknownToken("there is no such user, or the password is wrong"))
    : by;
}

function tokenOf(header: string | undefined): string | undefined {
  return /^token +(\S+)$/i.exec(header ?? "")?.[1];
}

type By = (
  text: string | undefined,
  address: string,
  way: "header" | "cookie",
) => Promise<Authenticated>;

function tokenAuthentication({ store, rateLimit, onFailure }: Deps): By {
  // Consoles that are left open overnight must not shut out who has a good token.
  const limits = {
    header: createAddressLimit(rateLimit, wrongTokens),
    cookie: createAddressLimit(rateLimit, wrongTokens),
  };
  const proven = new Proven();
  return async (token, address, way) => {
    const failures = limits[way];
    const refusedWith = (detail: string): Authenticated => {
      const unknown = unknownToken(detail);
      return refused(way === "cookie" ? withEndCookie(unknown) : unknown);
    };
    if (token === undefined || !/^[\w.~+/=-]{1,512}$/.test(token))
      return refusedWith("the request needs the header `Authorization: Token <API_TOKEN>`");
    const digest = sha256Of(token);
    const waitMs = proven.has(digest) ? 0 : failures.waitMs(address);
    if (waitMs > 0) return refused(tooMany("this address sent too many unknown tokens", waitMs));
    const actor = await read(store, async (work) => userByToken(work, digest));
    // What a browser got by a password is good in its cookie alone, which no script can read.
    if (actor === undefined || (actor.isSession && way === "header")) {
      proven.remove(digest);
      failures.take(address);
      return refusedWith("there is no such API token, or it was revoked or has expired");
    }
    proven.add(digest);
    // Not waited for, and no part of the request: who reads must be able to on a full disk as well.
    if (!actor.isUseTold && actor.tokenId !== null) {
      const { tokenId } = actor;
      read(store, async (work) => noteTokenUse(work, tokenId)).catch(onFailure);
    }
    return { ok: true, actor, credentials: { kind: "token", text: token } };
  };
}

function passwordAuthentication({
  store,
  rateLimit,
  randomBytes,
}: Deps): (header: string | undefined, address: string) => Promise<ByPassword> {
  const byAddress = createAddressLimit(rateLimit, wrongPasswords);
  const byName = rateLimit(wrongPasswords);
  const proven = new Proven();
  const turns = new PasswordTurns();
  // An unknown name is compared with this hash, so that it takes as long as a known one.
  const nobody = hashPassword(Buffer.from(randomBytes(16)).toString("hex"), randomBytes);
  nobody.catch(() => undefined); // The rejection shows where it is awaited.
  return async (header, address) => {
    const given = parseBasic(header);
    if (given === undefined) return refused(unknownPassword());
    const pair = `${addressGroups(address)[0]} ${given.username}`;
    const isKnown = proven.has(pair);
    // Taken before it is known whether the password is wrong, so that of many at once none is checked beyond
    // the limit.
    const wrong = {
      take: () => {
        const waitMs = Math.max(byAddress.waitMs(address), byName.waitMs(given.username));
        if (waitMs > 0) return waitMs;
        byAddress.take(address);
        return byName.take(given.username);
      },
      give: () => {
        byAddress.give(address);
        byName.give(given.username);
      },
    };
    let isTaken = false;
    const take = (): number => {
      const waitMs = wrong.take();
      isTaken = waitMs === 0;
      return waitMs;
    };
    const waitMs = isKnown ? 0 : take();
    if (waitMs > 0) return refused(tooMany("too many wrong passwords", waitMs));
    const found = await read(store, async (work) => userCredentials(work, given.username));
    const isRight = await turns.run({ address, isKnown }, async () => {
      // A pair that was right before may have been wrong since, in a request before this one.
      const laterWaitMs = isTaken || proven.has(pair) ? 0 : take();
      if (laterWaitMs > 0) return laterWaitMs;
      return verifyPassword(given.password, found?.passwordHash ?? (await nobody));
    });
    if (isRight === undefined) {
      if (isTaken) wrong.give();
      return refused(tooMany("too many passwords are being checked", waitForTurnMs));
    }
    if (typeof isRight === "number") return refused(tooMany("too many wrong passwords", isRight));
    if (found === undefined || found.passwordHash === null || !isRight) {
      proven.remove(pair);
      if (!isTaken) wrong.take();
      return refused(unknownPassword());
    }
    if (isTaken) wrong.give();
    proven.add(pair);
    return { ok: true, actor: found.actor, mayPublish: found.mayPublish };
  };
}

/** Remembers the last keys that were right. */
class Proven {
  readonly #keys = new Set<string>();

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  remove(key: string): void {
    this.#keys.delete(key);
  }

  add(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    const oldest = this.#keys.size > keysMax ? this.#keys.values().next().value : undefined;
    if (oldest !== undefined) this.#keys.delete(oldest);
  }
}

/** Parses Basic credentials (RFC 7617) in UTF-8. */
function parseBasic(
  header: string | undefined,
): { username: string; password: string } | undefined {
  const encoded = /^basic +([\w+/=-]{1,4096})$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const found = /^([^:]{1,150}):(.{1,1024})$/s.exec(
    Buffer.from(encoded, "base64").toString("utf8"),
  );
  const [, username, password] = found ?? [];
  return username === undefined || password === undefined ? undefined : { username, password };
}

async function read<T>(store: Transactions, action: (work: Work) => Promise<T>): Promise<T> {
  return (await store.run(async (work) => ({ keep: true, value: await action(work) }))).value;
}

function refused(answer: ProblemAnswer): { readonly ok: false; readonly answer: ProblemAnswer } {
  return { ok: false, answer };
}

/** A browser forgets a session that has ended. */
function withEndCookie(answer: ProblemAnswer): ProblemAnswer {
  return { ...answer, headers: { ...answer.headers, "set-cookie": endCookie } };
}

function unknownToken(detail: string): ProblemAnswer {
  const headers = { "www-authenticate": 'Token realm="presentation-api"' };
  return problem(401, detail, { headers });
}

function unknownPassword(): ProblemAnswer {
  const headers = { "www-authenticate": 'Basic realm="presentation-api", charset="UTF-8"' };
  return problem(401, "the request needs the name and the password of a user", { headers });
}
