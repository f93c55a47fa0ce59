// How an agent signs in: OAuth 2.0 client credentials (RFC 6749 §4.4) over HTTP Basic.
//
//   POST /agent-api/v1/token   Authorization: Basic base64(name16:secret16)   Date: …   grant_type=client_credentials

// A host that signs in with the secret before the last rotation, within its grace, gets the new one with its token: sealed
// with the one it has, in the header below (base/vault-seal.ts). An agent of an earlier release ignores it.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { Epoch } from "./parts.ts";

export const agentApiPrefix = "/agent-api/v1";
export const nextSecretHeader = "x-accel-next-secret";

export const TokenAnswer = closed({
  access_token: Type.String({ minLength: 16, maxLength: 512 }),
  token_type: Type.Literal("Bearer"),
  /** Seconds; the agent renews after two thirds of them. */
  expires_in: Type.Integer({ minimum: 1 }),
  deployment_site_id: Type.Integer({ minimum: 1 }),
  /** The epoch of central's store. If it differs from the one before, the journal starts anew. */
  epoch: Epoch,
});
export type TokenAnswer = Static<typeof TokenAnswer>;
export const decodeTokenAnswer = decoder(TokenAnswer);

/** Every refusal of the agent API. `code` decides what the agent does; only `site_deleted` stops serving. */
export const AgentApiError = closed({
  code: Type.Union([
    Type.Literal("unknown_name"),
    Type.Literal("wrong_secret"),
    Type.Literal("expired_token"),
    Type.Literal("clock_skew"),
    Type.Literal("site_deleted"),
    Type.Literal("code_refused"),
    Type.Literal("invalid"),
    Type.Literal("not_found"),
    Type.Literal("conflict"),
    Type.Literal("too_large"),
    Type.Literal("too_many"),
    Type.Literal("unavailable"),
    Type.Literal("internal"),
  ]),
  message: Type.String(),
  hint: Type.Optional(Type.String()),
  /** The mark of the lane, in a `conflict` of request logs. */
  mark: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type AgentApiError = Static<typeof AgentApiError>;
export const decodeAgentApiError = decoder(AgentApiError);

/** Clocks that differ by more are refused with `clock_skew`. */
export const clockSkewMaxMs = 300_000;
