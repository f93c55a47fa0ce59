// Asks another central, by HTTP, whether it works on the store: directly, or through what stands before all of them.

import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import { readBody } from "../../base/http-listener.ts";
import { parseJson } from "../../core/journal/json-text.ts";
import { decodeCentralTold, type CentralTold } from "../../wire/central-told.ts";
import { agentApiPrefix } from "../../wire/token.ts";

const timeoutMs = 3_000;
const bytesMax = 4_096;

export type AskCentral = (origin: string, stop: AbortSignal) => Promise<CentralTold | undefined>;

/** `authority`: what hosts need to trust for the address of all. */
export function createAskCentral(authority: () => string | undefined): AskCentral {
  return async (origin, stop) => {
    try {
      return await askCentral(new URL(origin), authority(), stop);
    } catch {
      return undefined; // Nobody answers, or somebody else does.
    }
  };
}

/** Each time on a connection of its own: a balancer is to choose anew. */
async function askCentral(
  url: URL,
  pem: string | undefined,
  stop: AbortSignal,
): Promise<CentralTold | undefined> {
  const isSecure = url.protocol === "https:";
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const path = `${url.pathname.replace(/\/+$/, "")}${agentApiPrefix}/central`;
  const asked = (isSecure ? httpsRequest : httpRequest)(new URL(path, url), {
    agent: false,
    signal: AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]),
    ...(isSecure && pem !== undefined && { ca: [...getCACertificates("default"), pem] }),
  });
  asked.on("response", resolve);
  asked.on("error", reject);
  asked.end();
  try {
    const response = await promise;
    const read = await readBody(response, bytesMax, timeoutMs);
    if (!read.ok || response.statusCode !== 200) return undefined;
    const told = decodeCentralTold(parseJson(read.body.toString("utf8")));
    return told.ok ? told.value : undefined;
  } finally {
    asked.destroy();
  }
}

/** Names a central to people, and to the others. */
export function centralAddress(hostName: string, listenedAt: string): string {
  return `${hostName} (${listenedAt})`;
}

const anyHost = /^(?:0\.0\.0\.0|\[::\]):/;
const loopback = /^(?:127\.|\[::1\]:|localhost:)/;

/** Pure. Returns where a central can be asked that has this address; undefined for one that others cannot reach. */
export function originOfCentral(address: string, ownHostName: string): string | undefined {
  const [, hostName, listenedAt] = /^(\S+) \((\S+)\)$/.exec(address) ?? [];
  if (hostName === undefined || listenedAt === undefined) return undefined;
  if (loopback.test(listenedAt) && hostName !== ownHostName) return undefined;
  const origin = `http://${listenedAt.replace(anyHost, `${hostName}:`)}`;
  return URL.canParse(origin) ? origin : undefined;
}
