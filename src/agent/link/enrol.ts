// A host asks central for name and secret of a deployment site, with a code. It happens before there are settings, so nothing
// else of the link is used but its transport.

import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { request } from "undici";
import { openDispatcher } from "../../base/proxy.ts";
import { AccelError, codeOf } from "../../core/faults.ts";
import {
  authorityDigestOf,
  decodeAuthorityAnswer,
  decodeEnrolAnswer,
  type EnrolAnswer,
} from "../../wire/enrolment.ts";
import { agentApiPrefix } from "../../wire/token.ts";
import { linkRefusal, refusalBody, unreachable } from "./refusal.ts";
import { CentralTransport, decodeAnswer, readRefusal, readText } from "./transport.ts";

const deadlineMs = 30_000;
const answerBytesMax = 65_536;
const authorityBytesMax = 2 ** 20;
/** Pauses before the exchange is repeated, where an answer was lost. */
const pausesMs = [1_000, 3_000];

/** Makes the nonce of an exchange. It has to be kept until the exchange is over: who repeats it takes no second use. */
export function newNonce(): string {
  return randomBytes(16).toString("hex");
}

export type CodeExchange = {
  readonly centralUrl: string;
  readonly code: string;
  readonly nonce: string;
  readonly caPem: string | undefined;
  readonly signal: AbortSignal;
};

/**
 * Exchanges the code. Throws CODE_REFUSED, CLOCK_SKEWED, CENTRAL_REFUSED, or CENTRAL_UNREACHABLE after a few attempts with
 * the same nonce.
 */
export async function enrolHost(exchange: CodeExchange): Promise<EnrolAnswer> {
  const { centralUrl, caPem } = exchange;
  await using transport = new CentralTransport({ centralUrl, caPem });
  for (let attempt = 0; ; attempt++) {
    try {
      return await exchangeOnce(transport, exchange);
    } catch (error) {
      const pauseMs = pausesMs[attempt];
      if (codeOf(error) !== "CENTRAL_UNREACHABLE" || pauseMs === undefined) throw error;
      await wait(pauseMs, undefined, { signal: exchange.signal });
    }
  }
}

async function exchangeOnce(
  transport: CentralTransport,
  { code, nonce, signal }: CodeExchange,
): Promise<EnrolAnswer> {
  const what = `POST ${agentApiPrefix}/enrol`;
  const answer = await transport.send({
    method: "POST",
    path: "/enrol",
    // Central compares the clocks.
    headers: { "content-type": "application/json", date: new Date().toUTCString() },
    body: JSON.stringify({ code, nonce }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
  });
  if (answer.statusCode !== 200) {
    const refusal = linkRefusal(answer.statusCode, await readRefusal(answer, what), what);
    // A central of an earlier release asks for a token first, whatever the path.
    if (codeOf(refusal) !== "TOKEN_EXPIRED") throw refusal;
    throw new AccelError(
      "CENTRAL_REFUSED",
      "this central knows no codes: it is of an earlier release",
      { hint: "Join with --name16 and --secret-file, or update central." },
    );
  }
  return decodeAnswer(decodeEnrolAnswer, await readText(answer, answerBytesMax, what), what);
}

/**
 * Fetches central's authority from a central whose certificate nobody can check yet. The digest in the code stands for it:
 * any other authority, and none, is refused. Throws CENTRAL_UNREACHABLE, CENTRAL_REFUSED and CODE_REFUSED.
 */
export async function fetchAuthority(
  centralUrl: string,
  digest: string,
  signal: AbortSignal,
): Promise<string> {
  const what = `GET ${agentApiPrefix}/ca`;
  const url = `${centralUrl.replace(/\/+$/, "")}${agentApiPrefix}/ca`;
  const dispatcher = openDispatcher(new URL(url), {
    connectTimeoutMs: 10_000,
    silenceMs: deadlineMs,
    tls: { rejectUnauthorized: false },
  });
  try {
    const answer = await request(url, {
      dispatcher,
      signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
    }).catch((error: unknown) => {
      throw unreachable(what, error);
    });
    const text = await readText(answer, authorityBytesMax, what);
    const isGiven = answer.statusCode === 200;
    const pem = isGiven ? decodeAnswer(decodeAuthorityAnswer, text, what).ca_pem : undefined;
    if (pem !== undefined && authorityDigestOf(pem) === digest) return pem;
    // Nothing but central itself can say that it has no authority.
    if (!isGiven && refusalBody(text)?.code !== "not_found")
      throw linkRefusal(answer.statusCode, text, what);
    throw new AccelError(
      "CODE_REFUSED",
      isGiven
        ? "central's authority is not the one that the code names: the code is of another central, the authority has changed since, or somebody is between"
        : `central does not give the authority that the code names (${what}: ${answer.statusCode})`,
    );
  } finally {
    await dispatcher.destroy();
  }
}
