// `/clear-accelerator-cache/`: what was cleared where, as the agents proved it.

import { Type, type Static } from "typebox";
import { Count, Timestamp } from "../parts.ts";
import { body, Id, open, shape } from "./shape.ts";

const clearPatternsMax = 64;
const patternLengthMax = 4_096;
export const clearWaitDefaultS = 5;
export const clearWaitMaxS = 30;

export const cacheClear = body({
  url_path_patterns: Type.Array(Type.String({ minLength: 1, maxLength: patternLengthMax }), {
    minItems: 1,
    maxItems: clearPatternsMax,
  }),
});

export const ClearDeployment = open({
  deployment_site_id: Id,
  state: Type.Union([Type.Literal("applied"), Type.Literal("pending"), Type.Literal("failed")]),
  /** Null until the agent told. */
  matched: Type.Union([Count, Type.Null()]),
  removed: Type.Union([Count, Type.Null()]),
  blocked_in_flight: Type.Union([Count, Type.Null()]),
  took_ms: Type.Union([Count, Type.Null()]),
  /** More was cleared than matched: the whole domain. */
  widened: Type.Optional(Type.Boolean()),
  /** Of a deployment that is pending. */
  last_seen: Type.Optional(Timestamp),
  error: Type.Optional(Type.String()),
});
export type ClearDeployment = Static<typeof ClearDeployment>;

export const ClearState = open({
  clear_id: Type.String(),
  domain: Type.String(),
  patterns: Type.Array(Type.String()),
  deployments: Type.Array(ClearDeployment),
});
export type ClearState = Static<typeof ClearState>;
export const clearStateShape = shape(ClearState);
