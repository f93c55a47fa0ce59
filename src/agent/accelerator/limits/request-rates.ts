// A worker's side of `limits.requests`: asks the rules that a request meets, and tells what came of it. Synchronous, and nothing of it waits.
//
// Times are those of `performance.now()`. In the Node that this runs on it counts from the start of the process in every thread, so all workers have one clock, which never
// steps. A test holds that.

import { AddressReader } from "../../../core/addresses/address-reader.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import type { ClientAddress } from "../../../core/http/client-address.ts";
import type { LimitFact, LimitVerdict } from "../../../core/limits/limit-verdict.ts";
import type { RequestLimit } from "../../../core/limits/site-limits.ts";
import type { DecisionTeller } from "../../bots/decisions/decision-teller.ts";
import type { WorkerClock } from "../clock.ts";
import type { JudgedVisitor } from "../judging.ts";
import type { RequestTally } from "../records/request-tally.ts";
import { noRoom, type RateTable, type VisitorWords } from "./rate-table.ts";

export type RequestRatesDeps = {
  readonly table: Pick<RateTable, "keyOf" | "spend">;
  readonly tally: Pick<RequestTally, "limited" | "uncounted">;
  readonly decisions: Pick<DecisionTeller, "note">;
  readonly clock: Pick<WorkerClock, "steadyMs">;
};

/** What came of a request's rules. */
export type AskedLimits = LimitFact & {
  /** The rule that refuses it; where none does, the first that would but for its mode; undefined where none was against it. */
  readonly verdict: LimitVerdict | undefined;
  /** The one that the verdict can be looked up by; "" where there is none. */
  readonly decisionId: string;
};

/** A visitor who was let in, with his request. */
export type LimitedRequest = {
  readonly method: string;
  readonly client: ClientAddress | undefined;
  readonly fields: readonly Field[];
  readonly startedWallMs: number;
  readonly judged: Pick<JudgedVisitor, "served" | "verdict">;
};

const within: AskedLimits = Object.freeze({ kind: "within", verdict: undefined, decisionId: "" });
const second = 1_000_000;

export class RequestRates {
  readonly #deps: RequestRatesDeps;
  readonly #keys = new WeakMap<RequestLimit, Int32Array>();
  readonly #visitors = new VisitorReader();
  readonly #clockUs: () => number;

  constructor(deps: RequestRatesDeps) {
    this.#deps = deps;
    const { clock } = deps;
    this.#clockUs = () => clock.steadyMs() * 1_000;
  }

  /** Counts the request by each of the rules that takes its method, until one is against it. A visitor without an address is let in. */
  ask(limits: readonly RequestLimit[], request: LimitedRequest): AskedLimits {
    const { table, tally } = this.#deps;
    const { method, client, judged } = request;
    let visitor: VisitorWords | undefined;
    let passed: RequestLimit | undefined;
    for (const limit of limits) {
      if (!limit.takes(method)) continue;
      visitor ??= client === undefined ? undefined : this.#visitors.read(client.text);
      if (visitor === undefined) return within;
      const waitUs = table.spend(this.#keyOf(limit), visitor, limit.pace, this.#clockUs);
      if (waitUs === noRoom) tally.uncounted(judged.served.domain);
      else if (waitUs > 0 && limit.isEnforced)
        return { kind: "over", waitS: Math.ceil(waitUs / second), ...this.#tell(limit, request) };
      else if (waitUs > 0) passed ??= limit;
    }
    return passed === undefined ? within : { kind: "within", ...this.#tell(passed, request) };
  }

  #keyOf(limit: RequestLimit): Int32Array {
    const known = this.#keys.get(limit);
    if (known !== undefined) return known;
    const key = this.#deps.table.keyOf(limit.name);
    this.#keys.set(limit, key);
    return key;
  }

  #tell(
    { isEnforced, text: rule }: RequestLimit,
    { client, fields, startedWallMs: atMs, judged }: LimitedRequest,
  ): Pick<AskedLimits, "verdict" | "decisionId"> {
    const { tally, decisions } = this.#deps;
    const { served } = judged;
    const kind = isEnforced ? "limit" : "would-limit";
    const verdict = { kind, reason: "request-rate", bot: judged.verdict.bot, rule } as const;
    tally.limited(served.domain, kind);
    const userAgent = fieldValue(fields, "user-agent");
    const clientIp = client?.text ?? "";
    const { name: host } = served.host;
    const noted = { atMs, host, clientIp, userAgent, verdict, policyOf: undefined };
    return { verdict, decisionId: decisions.note(noted) };
  }
}

/** Reads addresses as they are counted; what it returns is overwritten by the next reading. */
export class VisitorReader {
  readonly #reader = new AddressReader();
  readonly #words = { first: 0, second: undefined as number | undefined };

  /** Undefined: the text is no address. */
  read(address: string): VisitorWords | undefined {
    const family = this.#reader.read(address);
    if (family === 0) return undefined;
    const [first = 0, next = 0] = this.#reader.words;
    this.#words.first = first | 0;
    this.#words.second = family === 6 ? next | 0 : undefined;
    return this.#words;
  }
}
