// The operator's import of bot lists, over the control socket, and the sweeping of elements whose bot is
// gone.

import type { ControlUpload } from "../../base/control-socket.ts";
import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import { AccelError } from "../../core/faults.ts";
import { parseDomainName } from "../../core/ids.ts";
import type { BotImport } from "../store/bots/bot-import.ts";

export type BotImportsDeps = {
  readonly imports: {
    /** Imports a list. Throws NOT_FOUND, CONFLICT or LIST_INVALID. */
    run(
      what: BotImport,
      body: AsyncIterable<Uint8Array>,
      signal: AbortSignal,
    ): Promise<Readonly<Record<string, unknown>>>;
    sweep(stop: AbortSignal): Promise<void>;
  };
  readonly log: Log;
  readonly sweepIntervalMs?: number;
};

const botCharsMax = 255;
const operatorCharsMax = 100;

export type BotImportsService = AsyncDisposable & {
  readonly uploads: Readonly<Record<"bots-import", ControlUpload>>;
};

/** Starts the service. Disposing waits for the sweep under way. */
export function startBotImports({
  imports,
  log,
  sweepIntervalMs = 60_000,
}: BotImportsDeps): BotImportsService {
  const ending = new AbortController();
  const stop = ending.signal;
  const onError = (error: unknown): void =>
    log.error({ err: error }, "sweeping the elements of bots that are gone failed");
  const sweep = async (): Promise<void> => imports.sweep(stop);
  const sweeping = repeatingFromNow(sweepIntervalMs, sweep, { stop, onError });
  return {
    uploads: {
      "bots-import": async (parameters, body, signal) => {
        const what = parseImport(parameters);
        const beganMs = performance.now();
        const done = await imports.run(what, body, AbortSignal.any([signal, stop]));
        const outcome = { ...done, took_ms: Math.round(performance.now() - beganMs) };
        log.info(outcome, "bots imported");
        return outcome;
      },
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await sweeping[Symbol.asyncDispose]();
    },
  };
}

/** Parses the parameters. Throws USAGE. */
function parseImport(parameters: unknown): BotImport {
  // Each member is checked below.
  const given = (parameters ?? {}) as Readonly<Record<string, unknown>>;
  const domain = parseDomainName(given["domain"]);
  if (domain === undefined)
    throw new AccelError("USAGE", `${String(given["domain"])} is no domain name`);
  const set = given["set"];
  if (set !== "bad" && set !== "vip") throw new AccelError("USAGE", "the set is bad or vip");
  const bot = given["bot"];
  if (typeof bot !== "string" || bot === "" || bot.length > botCharsMax || /\p{Cc}/u.test(bot))
    throw new AccelError("USAGE", `a bot's name has 1 to ${botCharsMax} characters`);
  const customer = given["customer"];
  if (customer !== undefined && !(Number.isSafeInteger(customer) && Number(customer) > 0))
    throw new AccelError("USAGE", "--customer takes the number of a customer");
  const operator = given["operator"];
  return {
    operator: typeof operator === "string" ? operator.slice(0, operatorCharsMax) : undefined,
    domain,
    customerId: customer === undefined ? undefined : Number(customer),
    set,
    bot,
    isReplacing: given["replace"] === true,
  };
}
