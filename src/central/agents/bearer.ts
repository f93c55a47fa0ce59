// Tells who calls, by the bearer token of a request or of a WebSocket upgrade.

import type { IncomingMessage } from "node:http";
import { refusal, type AgentAnswer } from "./answers.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import { sha256Of } from "../../core/ids.ts";

export type Caller =
  | { readonly ok: true; readonly deploymentSiteId: number; readonly shutCount: number }
  | { readonly ok: false; readonly refusal: AgentAnswer };

export async function authenticate(store: AgentStore, request: IncomingMessage): Promise<Caller> {
  const token = /^bearer ([\w-]{16,512})$/i.exec(request.headers.authorization ?? "")?.[1];
  const holder = token === undefined ? undefined : await store.tokenHolder(sha256Of(token));
  if (holder === undefined)
    return {
      ok: false,
      refusal: refusal("expired_token", "the access token is missing, unknown or expired"),
    };
  if (holder.deleted)
    return {
      ok: false,
      refusal: refusal("site_deleted", "this deployment site was deleted"),
    };
  const { deploymentSiteId, shutCount } = holder;
  return { ok: true, deploymentSiteId, shutCount };
}
