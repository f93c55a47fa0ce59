// Clients of the agent API, and a central whose every answer but the token is a script.

import { createHash } from "node:crypto";
import type { RequestListener } from "node:http";
import { CentralClient, type CentralClientOptions } from "../../src/agent/link/central-client.ts";
import { fixedSecret } from "../../src/agent/link/site-secret.ts";
import { listenHttp } from "../../src/base/http-listener.ts";
import type { Sha256 } from "../../src/core/ids.ts";
import { name16, secret16 } from "./fake-central.ts";

export const never = new AbortController().signal;
export const sha256 = (bytes: Uint8Array): Sha256 =>
  createHash("sha256").update(bytes).digest("hex") as Sha256;
export const clientOf = (url: string, options: Partial<CentralClientOptions> = {}): CentralClient =>
  new CentralClient({
    centralUrl: url,
    name16,
    secret: fixedSecret(secret16),
    stop: never,
    silenceMs: 300,
    ...options,
  });

export const tokenAnswer = {
  access_token: "0123456789abcdef",
  token_type: "Bearer",
  expires_in: 60,
  deployment_site_id: 1,
  epoch: "e".repeat(16),
};

/** Gives a token, then whatever `handler` does. */
export async function scripted(handler: RequestListener) {
  const listener = await listenHttp(
    (request, response) => {
      if (request.url?.endsWith("/token")) response.end(JSON.stringify(tokenAnswer));
      else handler(request, response);
    },
    { host: "127.0.0.1", port: 0 },
    { graceMs: 20 },
  );
  const client = clientOf(`http://127.0.0.1:${listener.port}`, { callTimeoutMs: 1_000 });
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await listener[Symbol.asyncDispose]();
    },
  };
}
