// `accel-central clear`: a customer's clear from a shell, through the customer API, with the proof of every instance.

import { randomUUID } from "node:crypto";
import { duration } from "../base/settings-fields.ts";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { sleep } from "../base/wait.ts";
import { ApiError } from "../client/api-error.ts";
import { createCustomerClient, type CustomerClient } from "../client/customer-client.ts";
import { AccelError, codeOf, messageOf, systemCode } from "../core/faults.ts";
import { patternsMax } from "../core/patterns/pattern-budget.ts";
import type { ClearState } from "../wire/customer/clear.ts";
import { waitMaxS } from "../wire/customer/proof.ts";
import {
  answeredOf,
  clearHeading,
  clearText,
  dryRunText,
  isSettled,
  provedOf,
  unprovenHint,
} from "./clear-text.ts";
import {
  clearNames,
  clearOptions,
  clearUsage,
  neededNames,
  type ClearNames,
} from "./clear-options.ts";
import {
  apiAccess,
  apiOptions,
  apiUsage,
  isNobodyListening,
  toldToCaller,
} from "./customer-api.ts";
import { plain } from "./text.ts";

const options = {
  ...apiOptions,
  ...clearOptions,
  "dry-run": { type: "boolean" },
  "clear-id": { type: "string" },
  wait: { type: "string" },
} as const;

const waitDefault = "30s";
const waitOf = duration("0s", "1d");
/** The time beyond central's own wait: for connecting, and for the way. */
const answerWithinMs = 15_000;
const askAgain = { firstMs: 200, mostMs: 5_000, answerWithinMs: 5_000 } as const;
/** How long a central at whose address nobody listens is taken for one that starts. */
const startsWithinMs = 10_000;

export const clearCommand: Command = {
  summary:
    "Clears URLs, prefixes, tags, hosts or what matches patterns from every accelerator of a domain, and shows the proof of each instance. Uses the customer API, from any host.",
  usage: [
    "accel-central clear DOMAIN --url URL… [--prefix PATH…] [--tag TAG…] [--host HOST…] [--soft] [--wait TIME]",
    "accel-central clear DOMAIN --everything [--soft] [--wait TIME]",
    "accel-central clear DOMAIN PATTERN… [--soft] [--wait TIME]",
    "accel-central clear DOMAIN … --dry-run",
    "accel-central clear DOMAIN --clear-id ID [--wait TIME]",
    "",
    clearUsage,
    "  --dry-run         count and sample what the clear would hit; nothing is cleared",
    "  --clear-id ID     show how far an earlier clear is; nothing is cleared",
    `  --wait TIME       how long to wait for the proof of all instances (default ${waitDefault}; 0s asks once)`,
    apiUsage,
    "",
    "The name of a main domain includes its sub-domains; the name of a sub-domain means that one only. After -- a pattern may begin with -.",
    "A pattern is an FTS5 query, e.g. 'url:z2fcssz2f*' (all under /css/), 'ext:css', 'mime:\"image png\"', 'kind:generated';",
    "docs/clear-cache.md has a table of them.",
    "",
    "Exit status: 0 every instance proved it, 1 failed or refused, 2 bad usage or settings, 3 accepted, but an instance is missing, is still deleting, or failed.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 1 + patternsMax);
    const order = orderOf(values, positionals);
    const access = apiAccess(values, context.env);
    await using client = createCustomerClient({
      ...access,
      timeoutMs: centralWaitS(order) * 1_000 + answerWithinMs,
    });
    try {
      if (order.kind === "dry run") await dryRun(client, order, context);
      else await clear(client, order, context);
    } catch (error) {
      throw toldToCaller(error, access);
    }
  },
};

type Shared = { readonly domain: string; readonly waitMs: number; readonly isJson: boolean };
type DryRunOrder = Shared & { readonly kind: "dry run"; readonly names: ClearNames };
type ClearOrder = Shared &
  (
    | { readonly kind: "clear"; readonly names: ClearNames }
    | { readonly kind: "read"; readonly id: string }
  );

function orderOf(
  values: ReturnType<typeof readArgs<typeof options>>["values"],
  [domain, ...patterns]: readonly string[],
): DryRunOrder | ClearOrder {
  const wait = waitOf(values.wait ?? waitDefault);
  if (!wait.ok) throw new AccelError("USAGE", `--wait ${wait.reason}`);
  const id = values["clear-id"];
  const isDry = values["dry-run"] === true;
  if (domain === undefined) throw new AccelError("USAGE", "clear takes a domain");
  const clears = values.soft === true || clearNames(values, patterns) !== undefined;
  if (id !== undefined && (isDry || clears))
    throw new AccelError(
      "USAGE",
      "--clear-id takes nothing to clear, no --soft and no --dry-run: it clears nothing",
    );
  const shared = { domain, waitMs: wait.value, isJson: values.json === true };
  if (id !== undefined) return { ...shared, kind: "read", id };
  return {
    ...shared,
    kind: isDry ? "dry run" : "clear",
    names: neededNames(values, patterns, "clear"),
  };
}

/** Returns how long central is asked to wait: at most as long as it would. */
function centralWaitS({ waitMs }: Shared): number {
  return Math.min(waitMs / 1_000, waitMaxS);
}

async function dryRun(
  client: CustomerClient,
  order: DryRunOrder,
  { out, stop }: CommandContext,
): Promise<void> {
  const { domain, names, isJson } = order;
  const wait = { waitSeconds: centralWaitS(order), signal: stop };
  const answer = await client.dryRunClear(domain, names, wait);
  out(isJson ? jsonText(answer) : dryRunText(answer));
  const { count, of } = answeredOf(answer);
  if (count < of)
    throw new AccelError("PROOF_INCOMPLETE", `only ${count} of ${of} deployments counted`);
}

async function clear(
  client: CustomerClient,
  order: ClearOrder,
  { out, stop }: CommandContext,
): Promise<void> {
  const over = AbortSignal.any([stop, AbortSignal.timeout(order.waitMs)]);
  const first = await (order.kind === "read"
    ? client.clearState(order.domain, order.id, { signal: stop })
    : given(client, order, stop, over));
  // Written at once: whoever interrupts the waiting can ask for the clear by its id.
  if (!order.isJson) out(clearHeading(first));
  const { state, failure } = await proven(client, order.domain, first, over);
  out(order.isJson ? jsonText(state) : clearText(state));
  const { count, of } = provedOf(state);
  if (count === of) return;
  const asked = failure === undefined ? "" : `; asked again, central did not answer: ${failure}`;
  const told = `clear ${state.clear_id} is proved by ${count} of ${of} instances${asked}`;
  throw new AccelError("PROOF_INCOMPLETE", plain(told), { hint: unprovenHint(state) });
}

/**
 * Gives the clear. Where the connection breaks after it was sent, central may have written it or not: it is sent again under the same
 * key until central answers or time is over, and is one clear however often it arrives. Where nobody listens it is sent again for as long as a start takes. Throws
 * what the first failure was, of those behind which it may have been sent where there is one.
 */
async function given(
  client: CustomerClient,
  order: Extract<ClearOrder, { readonly kind: "clear" }>,
  stop: AbortSignal,
  over: AbortSignal,
): Promise<ClearState> {
  const idempotencyKey = randomUUID();
  const options = { waitSeconds: centralWaitS(order), signal: stop, idempotencyKey };
  const started = AbortSignal.any([over, AbortSignal.timeout(startsWithinMs)]);
  let failed: unknown;
  let isSent = false;
  for (let restMs: number = askAgain.firstMs; ; restMs = Math.min(restMs * 1.5, askAgain.mostMs)) {
    try {
      return await client.clear(order.domain, order.names, options);
    } catch (error) {
      const isFirst: boolean = !isSent && isLost(error);
      if (!isFirst && !(isSent ? isAway(error) : isRefused(error))) throw error;
      if (isFirst) failed = error;
      failed ??= error;
      isSent ||= isFirst;
      if (!(await sleep(restMs, isSent ? over : started))) throw failed;
    }
  }
}

/** How the system and the client call a connection that ended with a request on it. */
const lostCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);
/** What a proxy answers when central has ended with a request on its connection. */
const lostStatuses: ReadonlySet<number> = new Set([502, 504]);

/** Returns whether central may have what was sent although it did not answer. */
function isLost(error: unknown): boolean {
  if (error instanceof ApiError) return lostStatuses.has(error.status);
  return error instanceof AccelError && lostCodes.has(systemCode(error.cause) ?? "");
}

/** Returns whether nobody listens at central's address: nothing was sent. */
function isRefused(error: unknown): boolean {
  return error instanceof AccelError && isNobodyListening(error.cause);
}

/** Returns whether central is not there, or not yet. */
function isAway(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 503 || lostStatuses.has(error.status);
  return codeOf(error) === "API_UNREACHABLE";
}

type Proven = {
  readonly state: ClearState;
  /** Why central could not be asked again; the state is then an older one. */
  readonly failure: string | undefined;
};

/**
 * Asks until no instance has anything more to tell, or time is over. Never rejects: a central that is away
 * for a while says nothing about the clear.
 */
async function proven(
  client: CustomerClient,
  domain: string,
  first: ClearState,
  over: AbortSignal,
): Promise<Proven> {
  let [state, failure, restMs]: [ClearState, string | undefined, number] = [
    first,
    undefined,
    askAgain.firstMs,
  ];
  for (;;) {
    if (isSettled(state) || !(await sleep(restMs, over))) return { state, failure };
    restMs = Math.min(restMs * 1.5, askAgain.mostMs);
    try {
      const signal = AbortSignal.any([over, AbortSignal.timeout(askAgain.answerWithinMs)]);
      state = await client.clearState(domain, state.clear_id, { signal });
      failure = undefined;
    } catch (error) {
      if (over.aborted) continue;
      failure = messageOf(error);
      if (error instanceof ApiError) restMs = Math.max(restMs, error.retryAfterMs ?? 0);
    }
  }
}

function jsonText(answer: unknown): string {
  return `${JSON.stringify(answer, null, 2)}\n`;
}
