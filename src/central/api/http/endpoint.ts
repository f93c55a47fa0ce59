// One row of the API: method, path, who may call, what the body is, what happens. Router, checks and
// documents are made from these rows.

import type { Json } from "../../../core/journal/canonical-json.ts";
import { parseDomainName } from "../../../core/ids.ts";
import type { Gives, QueryParameter, RefusalStatus } from "../../../wire/customer/operation.ts";
import type { Body } from "../../../wire/customer/shape.ts";
import type { Role } from "../../../core/roles.ts";
import { invalid, type Answer } from "./answer.ts";
import type { Actor } from "../../store/people/tokens.ts";
import type { OwnRowUnit } from "../../store/engine/read-committed.ts";
import type { Work } from "../../store/engine/work.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What an actor came with. */
export type Brought =
  | { readonly kind: "token"; readonly text: string }
  | { readonly kind: "password" };

/** A request on its way through an endpoint. */
export type Context = {
  /** Returns a parameter of the path, decoded. Throws for a name that the path does not have. */
  readonly param: (name: string) => string;
  readonly query: URLSearchParams;
  readonly clientAddress: string;
  /** What the actor came with; undefined where there is none. */
  readonly credentials: Brought | undefined;
  /** A header of the request; undefined if it is not there, or several times. */
  readonly header: (name: string) => string | undefined;
  /** The body as it comes, for an endpoint that takes a stream; for other endpoints it was read already. */
  readonly incoming: Incoming;
  /** Aborts when nobody waits for the answer any more, or central stops; what is known then is the answer. */
  readonly gone: AbortSignal;
  readonly read: <T>(action: (work: Work) => Promise<T>) => Promise<T>;
  /**
   * Runs a transaction that writes what is in force for nobody yet. It has no answer and no audit line; they
   * come with the change that puts it in force.
   */
  readonly prepare: <T>(action: (work: Work) => Promise<T>) => Promise<T>;
  /**
   * Runs one transaction, which is kept if the answer is good. It also stores the answer for a repeated
   * `Idempotency-Key` and the line of the audit trail. Deployments are woken after the commit. `streamed`
   * stands for a body that came as a stream. `listed` is said of a unit that may be READ COMMITTED.
   */
  readonly change: (
    action: (work: Work) => Promise<Answer>,
    streamed?: Json,
    listed?: OwnRowUnit,
  ) => Promise<Answer>;
};

export type Incoming = { readonly type: string; readonly bytes: AsyncIterable<Uint8Array> };

export type EndpointCall<T, A> = Context & { readonly body: T; readonly actor: A };

/**
 * The words about an endpoint in the OpenAPI document, beside its body. Tests hold every answer against them.
 */
export type Told = {
  readonly method: Method;
  /** The path below the prefix, with parameters as `:name` and the slash at the end. */
  readonly path: string;
  /** The name of the operation in clients that are made from the document, a verb first: `listBadBots`. */
  readonly id: string;
  readonly summary: string;
  readonly gives: Gives;
  /** The refusals beyond those that follow from credentials, body and query. */
  readonly refuses?: readonly RefusalStatus[];
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** Whether its answer has an `ETag`, and a change takes `If-Match` and `If-None-Match`. */
  readonly isTagged?: true;
};

/** A body that is too large to be held: a form with one file, or a list of addresses as text or JSON. */
export type StreamTaken = "file" | "addresses";

type Common<T> = Told & {
  readonly body?: Body<T>;
  readonly bodyBytesMax?: number;
  /** Whether the body may be a form (`multipart/form-data`) whose parts are the fields, instead of JSON. */
  readonly takesForms?: boolean;
  /** What the handler takes as it comes, instead of getting it read. */
  readonly takesStream?: StreamTaken;
  /** The field of the body that, if it is given, must equal what the path says. */
  readonly identity?: { readonly field: string; readonly param: string };
};

type Finish<A> = (call: EndpointCall<unknown, A>, answer: Answer) => Promise<Answer>;

/** What a token must be allowed to do, and whether one that is for some domains may do it for them. */
export type Needs = {
  readonly role: Role;
  /**
   * `domain`: the endpoint concerns domains that it names, or shows those alone that the token is for, or
   * nothing of a customer. `customer`: a token for some domains is refused.
   */
  readonly scope: "domain" | "customer";
};

type ForPublishers<T> = Common<T> & {
  readonly handle: (call: EndpointCall<T, Actor>) => Promise<Answer>;
  /** Turns what was stored into what is sent, after the commit and for each repetition. */
  readonly finish?: Finish<Actor>;
};
type ForUsers<T> = ForPublishers<T> & { readonly needs: Needs };
type ForAnyone<T> = Common<T> & {
  readonly handle: (call: EndpointCall<T, undefined>) => Promise<Answer>;
};

export type Accepted =
  | { readonly ok: false; readonly answer: Answer }
  | {
      readonly ok: true;
      /** The body without the fields that are ignored. */
      readonly body: Json;
      readonly handle: (context: Context, actor: Actor | undefined) => Promise<Answer>;
    };

export type Endpoint = Told & {
  /** `basic` means name and password of a user who may publish; `sign-in` a token, or name and password of any user. */
  readonly auth: "token" | "basic" | "sign-in" | "none";
  /** Undefined for an endpoint that takes no token. */
  readonly needs: Needs | undefined;
  readonly body: Body<unknown> | undefined;
  readonly bodyBytesMax: number;
  readonly takesForms: boolean;
  readonly takesStream: StreamTaken | undefined;
  /** Checks a body; an accepted one can be handled. */
  readonly accept: (raw: Readonly<Record<string, unknown>>, param: Context["param"]) => Accepted;
  readonly finish: (context: Context, actor: Actor | undefined, answer: Answer) => Promise<Answer>;
};

/** 1 MiB of fields and some room for their syntax. */
const bodyBytesDefault = 2 ** 20 + 2 ** 16;

export function forUsers<T>(spec: ForUsers<T>): Endpoint {
  return withUser(spec, "token", spec.needs);
}

/** Makes an endpoint for users whom the operator lets publish; they come with name and password. */
export function forPublishers<T>(spec: ForPublishers<T>): Endpoint {
  return withUser(spec, "basic", undefined);
}

type ForSignIn = Common<never> & {
  readonly handle: (
    call: EndpointCall<undefined, Actor> & { readonly credentials: Brought },
  ) => Promise<Answer>;
};

/** Makes an endpoint for users who come with a token, or with name and password. */
export function forSignIn(spec: ForSignIn): Endpoint {
  const handle = async (call: EndpointCall<undefined, Actor>): Promise<Answer> => {
    if (call.credentials === undefined) throw new TypeError("a sign-in without credentials");
    return spec.handle({ ...call, credentials: call.credentials });
  };
  return withUser({ ...spec, handle }, "sign-in", undefined);
}

function withUser<T>(
  spec: ForPublishers<T>,
  auth: "token" | "basic" | "sign-in",
  needs: Needs | undefined,
): Endpoint {
  const { finish } = spec;
  return {
    ...base(spec),
    auth,
    needs,
    accept: (raw, param) =>
      accept(spec, raw, param, async (body, context, actor) =>
        spec.handle({ ...context, body, actor: known(actor) }),
      ),
    finish: async (context, actor, answer) =>
      finish === undefined
        ? answer
        : finish({ ...context, body: undefined, actor: known(actor) }, answer),
  };
}

export function forAnyone<T>(spec: ForAnyone<T>): Endpoint {
  return {
    ...base(spec),
    auth: "none",
    needs: undefined,
    accept: (raw, param) =>
      accept(spec, raw, param, async (body, context) =>
        spec.handle({ ...context, body, actor: undefined }),
      ),
    finish: async (_context, _actor, answer) => answer,
  };
}

function base<T>(spec: Common<T>) {
  const { method, path, id, summary, gives, refuses, query, isTagged } = spec;
  const { body, bodyBytesMax, takesForms, takesStream } = spec;
  return {
    method,
    path,
    id,
    summary,
    gives,
    ...(refuses !== undefined && { refuses }),
    ...(query !== undefined && { query }),
    ...(isTagged !== undefined && { isTagged }),
    body,
    bodyBytesMax: bodyBytesMax ?? bodyBytesDefault,
    takesForms: takesForms ?? false,
    takesStream,
  };
}

function known(actor: Actor | undefined): Actor {
  if (actor === undefined) throw new TypeError("an endpoint for users was called without one");
  return actor;
}

function accept<T>(
  { body, identity }: Common<T>,
  raw: Readonly<Record<string, unknown>>,
  param: Context["param"],
  handle: (body: T, context: Context, actor: Actor | undefined) => Promise<Answer>,
): Accepted {
  // Endpoints without a body leave T open; nothing reads it.
  if (body === undefined)
    return { ok: true, body: {}, handle: async (c, a) => handle(undefined as T, c, a) };
  if (identity !== undefined && identity.field in raw) {
    const given = raw[identity.field];
    const wanted = param(identity.param);
    if (!isSame(given, wanted))
      return {
        ok: false,
        answer: invalid([
          {
            path: `/${identity.field}`,
            message: `differs from the path, which says ${JSON.stringify(wanted)}`,
          },
        ]),
      };
  }
  const writable = Object.fromEntries(
    Object.entries(raw).filter(([name]) => !body.readOnly.includes(name)),
  );
  const decoded = body.decode(writable);
  if (!decoded.ok) return { ok: false, answer: invalid(decoded.errors) };
  return {
    ok: true,
    body: writable as Json, // It was read from JSON.
    handle: async (context, actor) => handle(decoded.value, context, actor),
  };
}

function isSame(given: unknown, wanted: string): boolean {
  if (String(given) === wanted) return true;
  const name = parseDomainName(given);
  return name !== undefined && name === parseDomainName(wanted);
}
