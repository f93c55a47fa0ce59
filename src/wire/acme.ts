// What directories of ACME answer (RFC 8555 §7.1, RFC 9773 §4.2), as far as central reads it. Members that are not
// named here are ignored.

import { Type, type Static } from "typebox";
import { decoder } from "./validate.ts";

const Url = Type.String({ pattern: "^https://", maxLength: 2_048 });

const Directory = Type.Object({
  newNonce: Url,
  newAccount: Url,
  newOrder: Url,
  renewalInfo: Type.Optional(Url),
  meta: Type.Optional(Type.Object({ externalAccountRequired: Type.Optional(Type.Boolean()) })),
});
export type AcmeDirectory = Static<typeof Directory>;
export const decodeAcmeDirectory = decoder(Directory);

const Identifier = Type.Object({ type: Type.String(), value: Type.String({ maxLength: 253 }) });

/** RFC 8555 §6.7; `subproblems` say which host is meant (§6.7.1). */
const Problem = Type.Object({
  type: Type.Optional(Type.String()),
  detail: Type.Optional(Type.String()),
  subproblems: Type.Optional(
    Type.Array(
      Type.Object({
        type: Type.Optional(Type.String()),
        detail: Type.Optional(Type.String()),
        identifier: Type.Optional(Identifier),
      }),
    ),
  ),
});
export type AcmeProblem = Static<typeof Problem>;
export const decodeAcmeProblem = decoder(Problem);

const Order = Type.Object({
  status: Type.String(),
  expires: Type.Optional(Type.String({ maxLength: 40 })),
  authorizations: Type.Array(Url, { maxItems: 1_000 }),
  finalize: Url,
  certificate: Type.Optional(Url),
  error: Type.Optional(Problem),
});
export type DirectoryOrder = Static<typeof Order>;
export const decodeDirectoryOrder = decoder(Order);

const Authorization = Type.Object({
  identifier: Identifier,
  status: Type.String(),
  challenges: Type.Array(
    Type.Object({
      type: Type.String(),
      url: Url,
      status: Type.String(),
      token: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_-]{1,255}$" })),
      error: Type.Optional(Problem),
    }),
    { maxItems: 100 },
  ),
});
export type AcmeAuthorization = Static<typeof Authorization>;
export const decodeAcmeAuthorization = decoder(Authorization);

const RenewalInfo = Type.Object({
  suggestedWindow: Type.Object({
    start: Type.String({ maxLength: 40 }),
    end: Type.String({ maxLength: 40 }),
  }),
});
export const decodeRenewalInfo = decoder(RenewalInfo);
