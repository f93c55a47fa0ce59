// `/tokens/`: the tokens of a customer, what each may do and where.

import { Type, type Static } from "typebox";
import { roles, type Role } from "../../core/roles.ts";
import { closed } from "../validate.ts";
import { body, DomainText, Id, nameText, open, shape } from "./shape.ts";

const RoleName = Type.Unsafe<Role>({
  enum: [...roles],
  description:
    "`read` looks, `clear` also clears caches, `write` also changes what is served and who is let in, `owner` also sees secrets and manages sites, domains, tokens and the customer.",
});

export const tokenNameMax = 100;
export const tokenDomainsMax = 100;
export const tokenLifetimeMaxS = 10 * 365 * 86_400;

const TokenName = nameText(tokenNameMax);
const domainsAbout =
  "The main domains that it is for, with their sub-domains; null if it is for everything of the customer.";

const fields = {
  id: Id,
  name: Type.String({
    description: "Empty for tokens that a trial, a recovery or the operator issued.",
  }),
  role: RoleName,
  domains: Type.Union([Type.Array(Type.String()), Type.Null()], { description: domainsAbout }),
  username: Type.String({ description: "Whose it is: changes by it are that user's." }),
  when_created: Type.String(),
  when_expires: Type.Union([Type.String(), Type.Null()]),
  when_last_used: Type.Union([Type.String(), Type.Null()], {
    description: "To the minute; null if it was not used since central knows it.",
  }),
};

const example = {
  id: 12,
  name: "deploy of the shop",
  role: "clear",
  domains: ["www.example.com"],
  username: "anna",
  when_created: "2026-11-28T08:00:00.000Z",
  when_expires: "2027-02-26T08:00:00.000Z",
  when_last_used: null,
};

export const ApiToken = open(fields, {
  title: "ApiToken",
  description: "A token of the customer API. The token itself is in no answer but the first.",
  examples: [example],
});
export type ApiToken = Static<typeof ApiToken>;
export const apiTokenShape = shape(ApiToken);

export const ApiTokenMade = open(
  { ...fields, token: Type.String({ description: "The token. It is shown only here." }) },
  {
    title: "ApiTokenMade",
    description: "A new token of the customer API.",
    examples: [{ ...example, token: "k1Jm0V3lq8cX2yQd7bF5sT9wZ4aE6rH8uN0pG1iL3oM" }],
  },
);
export type ApiTokenMade = Static<typeof ApiTokenMade>;
export const apiTokenMadeShape = shape(ApiTokenMade);

export const tokenTermFields = {
  name: TokenName,
  role: RoleName,
  domains: Type.Optional(
    Type.Union([Type.Array(DomainText, { minItems: 1, maxItems: tokenDomainsMax }), Type.Null()], {
      description: domainsAbout,
    }),
  ),
  lifetime_seconds: Type.Optional(
    Type.Union([Type.Integer({ minimum: 60, maximum: tokenLifetimeMaxS }), Type.Null()], {
      description: "How long it can be used; null or not given: until it is revoked.",
    }),
  ),
};

const Asked = closed(tokenTermFields);
export type ApiTokenCreate = Static<typeof Asked>;
export const apiTokenCreate = body(tokenTermFields, [], {
  examples: [
    {
      name: "deploy of the shop",
      role: "clear",
      domains: ["www.example.com"],
      lifetime_seconds: 7_776_000,
    },
  ],
});
