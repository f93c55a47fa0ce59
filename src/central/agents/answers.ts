// Answers of the agent API: JSON with a status; refusals carry a code that decides what the agent does.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { AgentApiError } from "../../wire/token.ts";

export type RefusalCode = AgentApiError["code"];

const statusOf: Readonly<Record<RefusalCode, number>> = {
  unknown_name: 401,
  wrong_secret: 401,
  expired_token: 401,
  clock_skew: 401,
  site_deleted: 401,
  code_refused: 403,
  invalid: 400,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  too_many: 429,
  unavailable: 503,
  internal: 500,
};

export type AgentAnswer = {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | number>>;
};

/** One authenticated call. `signal` aborts when the caller is gone or central stops. */
export type AgentCall = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly deploymentSiteId: number;
  readonly signal: AbortSignal;
};

/** Returns `undefined` if the route has written the response itself. */
export type AgentRoute = (
  call: AgentCall,
  parameters: readonly string[],
) => Promise<AgentAnswer | undefined>;

export function agentAnswer(body: unknown, status = 200): AgentAnswer {
  return { status, body };
}

export function refusal(
  code: RefusalCode,
  message: string,
  more: { readonly hint?: string; readonly mark?: number; readonly retryAfterS?: number } = {},
): AgentAnswer {
  const { retryAfterS, ...members } = more;
  const headers: Record<string, string | number> = {};
  if (retryAfterS !== undefined) headers["retry-after"] = retryAfterS;
  if (statusOf[code] === 401)
    headers["www-authenticate"] =
      code === "expired_token" ? 'Bearer error="invalid_token"' : 'Basic realm="accel-agent"';
  const body: AgentApiError = { code, message, ...members };
  return { status: statusOf[code], body, headers };
}

export function sendAnswer(response: ServerResponse, { status, body, headers }: AgentAnswer): void {
  if (response.headersSent || response.destroyed) return;
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, {
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
