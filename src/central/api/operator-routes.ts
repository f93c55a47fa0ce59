// What operators' commands do with users, tokens and customers: across customers, over the control socket,
// each change with its line in the audit trail.

import { createHash } from "node:crypto";
import type { ControlHandler, ControlRoutes } from "../../base/control-socket.ts";
import type { Json } from "../../core/journal/canonical-json.ts";
import { AccelError } from "../../core/faults.ts";
import {
  decodeCustomerAdd,
  decodeCustomerList,
  decodeCustomerShow,
  decodeTokenIssue,
  decodeTokenList,
  decodeTokenRevoke,
  decodeUserAdd,
  decodeUserEmail,
  decodeUserList,
  decodeUserLock,
  decodeUserPassword,
  decodeUserPermit,
  decodeUserShow,
} from "../../wire/operator.ts";
import { describeErrors, type Decoder } from "../../wire/validate.ts";
import { hashPassword } from "./password.ts";
import type { PageRange, Work } from "../store/engine/work.ts";
import type { CustomerLine } from "../store/people/people.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import {
  findPerson,
  listCustomers,
  listPeople,
  listTokens,
  type Person,
  lockUser,
  revokeTokens,
  setEmail,
  setPassword,
  setPermission,
  unlockUser,
} from "../store/people/people.ts";
import { addCustomer } from "../store/people/customers.ts";
import { issueToken, wholeCustomer } from "../store/people/tokens.ts";
import { isProblem } from "./http/path-values.ts";
import { termsOf } from "./token-terms.ts";
import { addUser } from "../store/people/users.ts";
import { recordAudit, type AuditLine } from "../store/people/audit.ts";

export type OperatorDeps = {
  readonly store: Transactions;
  readonly randomBytes: (count: number) => Uint8Array;
};

const tokenBytes = 32;
const pageRows = 500;

export function operatorRoutes(deps: OperatorDeps): ControlRoutes {
  return {
    ...userRoutes(deps),
    ...accountRoutes(deps),
    ...tokenRoutes(deps),
    ...customerRoutes(deps),
  };
}

function userRoutes({ store, randomBytes }: OperatorDeps): ControlRoutes {
  return {
    "user-add": handler(decodeUserAdd, async (asked) => {
      const passwordHash =
        asked.password === undefined ? null : await hashPassword(asked.password, randomBytes);
      const token = asked.token === true ? newToken(randomBytes) : undefined;
      return change(store, asked.operator, "user add", async (work, tell) => {
        const id = await addUser(work, {
          customer_id: asked.customer_id,
          username: asked.username,
          email: asked.email ?? "",
          first_name: asked.first_name ?? "",
          last_name: asked.last_name ?? "",
          password_hash: passwordHash,
        });
        if (id === "no-customer") throw noCustomer(asked.customer_id);
        if (id === "username-taken")
          throw new AccelError("CONFLICT", `the username ${asked.username} is in use`);
        if (token !== undefined) await issueToken(work, id, token.digest);
        const { username, email = "" } = asked;
        tell({
          customer_id: asked.customer_id,
          ids: { user_id: id },
          change: {
            username,
            email,
            has_password: passwordHash !== null,
            has_token: token !== undefined,
          },
        });
        const person = await personNamed(work, username);
        return token === undefined ? person : { ...person, token: token.text };
      });
    }),
    "user-list": handler(decodeUserList, ({ customer_id: customerId }) =>
      pages(store, async (work, range) => listPeople(work, customerId, range)),
    ),
    "user-show": handler(decodeUserShow, async ({ username }) =>
      read(store, async (work) => personNamed(work, username)),
    ),
  };
}

/** The routes for what a user may do, and for who gets in as one. */
function accountRoutes({ store, randomBytes }: OperatorDeps): ControlRoutes {
  return {
    "user-password": handler(decodeUserPassword, async ({ operator, username, password }) => {
      const hash = password === null ? null : await hashPassword(password, randomBytes);
      return change(store, operator, "user password", async (work, tell) => {
        const person = await personNamed(work, username);
        await setPassword(work, person.id, hash);
        tell(about(person, { has_password: hash !== null }));
        return personNamed(work, username);
      });
    }),
    "user-email": handler(decodeUserEmail, async ({ operator, username, email }) =>
      change(store, operator, "user email", async (work, tell) => {
        const person = await personNamed(work, username);
        await setEmail(work, person.id, email);
        tell(about(person, { email, email_before: person.email }));
        return personNamed(work, username);
      }),
    ),
    "user-lock": handler(decodeUserLock, async ({ operator, username, locked }) =>
      change(store, operator, locked ? "user lock" : "user unlock", async (work, tell) => {
        const person = await personNamed(work, username);
        await (locked ? lockUser(work, person.id) : unlockUser(work, person.id));
        tell(about(person, {}));
        return personNamed(work, username);
      }),
    ),
    "user-permit": handler(decodeUserPermit, async (asked) => {
      const { operator, username, permission, granted } = asked;
      return change(store, operator, granted ? "user grant" : "user revoke", async (work, tell) => {
        const person = await personNamed(work, username);
        await setPermission(work, person.id, permission, granted);
        tell(about(person, { permission }));
        return personNamed(work, username);
      });
    }),
  };
}

function tokenRoutes({ store, randomBytes }: OperatorDeps): ControlRoutes {
  return {
    "token-list": handler(decodeTokenList, async (asked) => {
      const { username, customer_id: customerId, all: withRevoked = false } = asked;
      const userId =
        username === undefined
          ? undefined
          : (await read(store, async (work) => personNamed(work, username))).id;
      return pages(store, async (work, range) =>
        listTokens(work, { userId, customerId, withRevoked }, range),
      );
    }),
    "token-issue": handler(decodeTokenIssue, async ({ operator, username, ...asked }) => {
      const { text, digest } = newToken(randomBytes);
      return change(store, operator, "token issue", async (work, tell) => {
        const person = await personNamed(work, username);
        const terms = await termsOf(work, wholeCustomer(person.customer_id), asked);
        if (isProblem(terms))
          throw new AccelError("USAGE", describeErrors(terms.problem.errors ?? []));
        const id = await issueToken(work, person.id, digest, terms);
        const { name, role, domains, whenExpires: when_expires } = terms;
        const told = { role, domains, when_expires };
        tell(about(person, { name, ...told }, { token_id: id }));
        const { customer_id } = person;
        return { id, user_id: person.id, username, customer_id, name, ...told, token: text };
      });
    }),
    "token-revoke": handler(decodeTokenRevoke, async (asked) =>
      change(store, asked.operator, "token revoke", async (work, tell) => {
        const of =
          "token_id" in asked
            ? { tokenId: asked.token_id }
            : { userId: (await personNamed(work, asked.username)).id };
        const { revoked, links } = await revokeTokens(work, of);
        const [first] = revoked;
        const person =
          first === undefined && links > 0 && "username" in asked
            ? await personNamed(work, asked.username)
            : undefined;
        const whose = first ?? (person && { ...person, user_id: person.id });
        if (whose === undefined)
          throw new AccelError(
            "NOT_FOUND",
            "token_id" in asked
              ? `there is no token ${asked.token_id} in force`
              : `${asked.username} has neither a token in force nor a link to a new one`,
          );
        tell({
          customer_id: whose.customer_id,
          ids: { user_id: whose.user_id, token_ids: revoked.map(({ id }) => id) },
          change: { username: whose.username, recovery_links: links },
        });
        return { revoked, recovery_links: links };
      }),
    ),
  };
}

function customerRoutes({ store }: OperatorDeps): ControlRoutes {
  return {
    "customer-list": handler(decodeCustomerList, () =>
      pages(store, async (work, range) => listCustomers(work, undefined, range)),
    ),
    "customer-show": handler(decodeCustomerShow, async ({ customer_id: id }) =>
      read(store, async (work) => {
        const customer = await customerOf(work, id);
        const all = { after: 0, limit: Number.MAX_SAFE_INTEGER };
        return { ...customer, users: await listPeople(work, id, all) };
      }),
    ),
    "customer-add": handler(decodeCustomerAdd, async ({ operator, name }) =>
      change(store, operator, "customer add", async (work, tell) => {
        const id = await addCustomer(work, name);
        tell({ customer_id: id, ids: { customer_id: id }, change: { name } });
        return customerOf(work, id);
      }),
    ),
  };
}

/** Makes a handler. Parameters that are not valid are refused with USAGE. */
export function handler<T>(
  decode: Decoder<T>,
  handle: (asked: T, signal: AbortSignal) => unknown,
): ControlHandler {
  return (parameters, signal) => {
    const decoded = decode(parameters);
    if (!decoded.ok) throw new AccelError("USAGE", describeErrors(decoded.errors));
    return handle(decoded.value, signal);
  };
}

type Told = Pick<AuditLine, "customer_id" | "ids" | "change">;

function about(
  { id, customer_id, username }: Person,
  more: Readonly<Record<string, Json>>,
  ids: Readonly<Record<string, Json>> = {},
): Told {
  return { customer_id, ids: { user_id: id, ...ids }, change: { username, ...more } };
}

/** Runs a change. If the action throws, all of it is taken back. */
export async function change<T>(
  store: Transactions,
  operator: string,
  action: string,
  run: (work: Work, tell: (told: Told) => void) => Promise<T>,
): Promise<T> {
  return read(store, async (work) => {
    const told: Told[] = [];
    const value = await run(work, (one) => void told.push(one));
    for (const one of told)
      await recordAudit(work, {
        ...one,
        via: "operator",
        who: operator,
        user_id: null,
        action,
        address: null,
        request_id: null,
      });
    return value;
  });
}

export async function read<T>(store: Transactions, action: (work: Work) => Promise<T>): Promise<T> {
  return store.transact(action);
}

/** Yields one row after the other, with a transaction for each page. */
export async function* pages<T extends { readonly id: number }>(
  store: Transactions,
  page: (work: Work, range: PageRange) => Promise<readonly T[]>,
): AsyncGenerator<T, void, undefined> {
  for (let after: number | undefined = 0; after !== undefined;) {
    const range: PageRange = { after, limit: pageRows };
    const rows: readonly T[] = await read(store, async (work) => page(work, range));
    yield* rows;
    after = rows.length === pageRows ? rows.at(-1)?.id : undefined;
  }
}

export async function personNamed(work: Work, username: string): Promise<Person> {
  const person = await findPerson(work, username);
  if (person === undefined) throw new AccelError("NOT_FOUND", `there is no user ${username}`);
  return person;
}

/** Of a number there is nothing to spell: the hint says where the numbers are. */
export const noCustomer = (id: number): AccelError =>
  new AccelError("NOT_FOUND", `there is no customer ${id}`, {
    hint: "`accel-central customer list` has the number of each.",
  });

export const noSite = (id: number): AccelError =>
  new AccelError("NOT_FOUND", `there is no deployment site ${id}`, {
    hint: "`accel-central site list` has the number of each.",
  });

async function customerOf(work: Work, id: number): Promise<CustomerLine> {
  const [customer] = await listCustomers(work, id, { after: 0, limit: 1 });
  if (customer === undefined) throw noCustomer(id);
  return customer;
}

function newToken(randomBytes: OperatorDeps["randomBytes"]): {
  readonly text: string;
  readonly digest: string;
} {
  const text = Buffer.from(randomBytes(tokenBytes)).toString("base64url");
  return { text, digest: createHash("sha256").update(text).digest("hex") };
}
