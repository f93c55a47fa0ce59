// What operators' commands ask a running central over its control socket.

import { Type, type Static } from "typebox";
import { Email, PersonName, Username, UserPassword } from "./customer/user.ts";
import { enrolmentFields } from "./customer/enrolment.ts";
import { Id, TagsText } from "./customer/shape.ts";
import { tokenTermFields } from "./customer/token.ts";
import { closed, decoder } from "./validate.ts";

/** The account of the host that runs the command, as the command states it. */
const by = { operator: Type.String({ minLength: 1, maxLength: 100 }) };
/** A name without control characters, because it is printed. */
const CustomerName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[^\\u0000-\\u001f\\u007f]+$",
});

export const decodeUserAdd = decoder(
  closed({
    ...by,
    username: Username,
    customer_id: Id,
    email: Type.Optional(Email),
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
    password: Type.Optional(UserPassword),
    /** Whether to make a token, which is shown once. */
    token: Type.Optional(Type.Boolean()),
  }),
);
export const decodeUserList = decoder(closed({ customer_id: Type.Optional(Id) }));
export const decodeUserShow = decoder(closed({ username: Username }));
export const decodeUserPassword = decoder(
  /** Null: the user has no password from now on. */
  closed({ ...by, username: Username, password: Type.Union([UserPassword, Type.Null()]) }),
);
/** An empty address removes it. */
export const decodeUserEmail = decoder(closed({ ...by, username: Username, email: Email }));
export const decodeUserLock = decoder(
  closed({ ...by, username: Username, locked: Type.Boolean() }),
);
export const decodeUserPermit = decoder(
  closed({
    ...by,
    username: Username,
    permission: Type.Union([Type.Literal("publish"), Type.Literal("read-logs")]),
    granted: Type.Boolean(),
  }),
);

export const decodeTokenList = decoder(
  closed({
    username: Type.Optional(Username),
    customer_id: Type.Optional(Id),
    /** Whether to list the revoked ones too. */
    all: Type.Optional(Type.Boolean()),
  }),
);
export const decodeTokenIssue = decoder(
  closed({
    ...by,
    username: Username,
    name: Type.Optional(tokenTermFields.name),
    role: Type.Optional(tokenTermFields.role),
    domains: tokenTermFields.domains,
    lifetime_seconds: tokenTermFields.lifetime_seconds,
  }),
);
export const decodeTokenRevoke = decoder(
  Type.Union([
    closed({ ...by, token_id: Id }),
    /** Revokes all tokens of a user. */
    closed({ ...by, username: Username }),
  ]),
);

export const decodeCustomerList = decoder(closed({}));
export const decodeCustomerShow = decoder(closed({ customer_id: Id }));
export const decodeCustomerAdd = decoder(closed({ ...by, name: CustomerName }));

export const AuditAsked = closed({
  customer_id: Type.Optional(Id),
  who: Type.Optional(Type.String({ minLength: 1, maxLength: 150 })),
  /** ISO 8601. */
  since: Type.Optional(Type.String({ maxLength: 40 })),
  /** How many of the newest lines are shown; with `since`, all. */
  lines: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
  follow: Type.Optional(Type.Boolean()),
});
export type AuditAsked = Static<typeof AuditAsked>;
export const decodeAuditAsked = decoder(AuditAsked);

export const decodeSiteList = decoder(closed({ customer_id: Type.Optional(Id) }));
export const decodeSiteAdd = decoder(
  closed({ ...by, username: Username, tags: Type.Optional(TagsText) }),
);
export const decodeSiteEnrol = decoder(
  closed({ ...by, deployment_site_id: Id, ...enrolmentFields }),
);
export const decodeSiteCodes = decoder(closed({ deployment_site_id: Id }));
export const decodeSiteRevokeCode = decoder(
  closed({ ...by, deployment_site_id: Id, enrolment_id: Id }),
);

export const decodeLogLosses = decoder(
  closed({
    deployment_site_id: Type.Optional(Id),
    /** The newest days on which records arrived. */
    days: Type.Integer({ minimum: 1, maximum: 10_000 }),
  }),
);
