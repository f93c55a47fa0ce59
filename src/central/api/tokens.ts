// `/tokens/`: a customer's tokens, each with what it may do, where and for how long: made, listed, revoked.

import { sha256Of } from "../../core/ids.ts";
import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import { apiTokenCreate, apiTokenMadeShape, apiTokenShape } from "../../wire/customer/token.ts";
import { revokeTokens } from "../store/people/people.ts";
import {
  countApiTokens,
  findApiToken,
  issueToken,
  listApiTokens,
  tokensMax,
} from "../store/people/tokens.ts";
import type { ResourceDeps } from "./deps.ts";
import {
  conflict,
  created,
  list,
  noContent,
  notFound,
  ok,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { termsOf } from "./token-terms.ts";
import { idOf, isProblem, shownId } from "./http/path-values.ts";

const onePath = "/tokens/:token_id/";
const tokenBytes = 32;

export function tokenEndpoints({ randomBytes }: ResourceDeps): readonly Endpoint[] {
  return [
    ...readEndpoints(),
    forUsers({
      method: "POST",
      path: "/tokens/",
      id: "createToken",
      needs: { role: "owner", scope: "customer" },
      summary: "Make a token of the user who asks, which may do what its role says, where it says",
      gives: makes(apiTokenMadeShape),
      refuses: [409],
      body: apiTokenCreate,
      handle: async ({ actor, body, change }) => {
        const token = Buffer.from(randomBytes(tokenBytes)).toString("base64url");
        return change(async (work) => {
          const terms = await termsOf(work, actor, body);
          if (isProblem(terms)) return terms;
          if ((await countApiTokens(work, actor.customerId)) >= tokensMax)
            return conflict(`a customer has at most ${tokensMax} tokens; revoke one of them`);
          const id = await issueToken(work, actor.userId, sha256Of(token), terms);
          const made = await findApiToken(work, actor.customerId, id);
          return created({ ...made, token });
        });
      },
    }),
    forUsers({
      method: "DELETE",
      path: onePath,
      id: "deleteToken",
      needs: { role: "owner", scope: "customer" },
      summary: "Revoke a token; it is refused from the next request on",
      gives: givesNothing,
      refuses: [404],
      handle: async ({ actor, param, change }) =>
        change(async (work) => {
          const found = await findApiToken(work, actor.customerId, idOf(param("token_id")));
          if (found === undefined) return noToken(param("token_id"));
          await revokeTokens(work, { tokenId: found.id });
          return noContent;
        }),
    }),
  ];
}

function readEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/tokens/",
      id: "listTokens",
      needs: { role: "owner", scope: "customer" },
      summary: "List the tokens that are in force; the tokens themselves are not shown",
      gives: lists(apiTokenShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (work) => listApiTokens(work, actor.customerId, range))),
    }),
    forUsers({
      method: "GET",
      path: onePath,
      id: "getToken",
      needs: { role: "owner", scope: "customer" },
      summary: "Read what a token may do and when it was used",
      gives: gives(apiTokenShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const id = param("token_id");
        const found = await read(async (work) => findApiToken(work, actor.customerId, idOf(id)));
        return found === undefined ? noToken(id) : ok(found);
      },
    }),
  ];
}

function noToken(id: string): ProblemAnswer {
  return notFound(`token ${shownId(id)}`);
}
