// A worker's side of the decision log: it gives each decision an id and tells main in batches, one line of
// JSON a decision. Main answers each batch before it gets the next; decisions that do not fit meanwhile are
// dropped and counted. Nothing here waits.

import { randomFillSync } from "node:crypto";
import type { MessagePort } from "node:worker_threads";
import { agentCharsMax, type Decision } from "../../../core/serving/decision.ts";
import type { LimitVerdict } from "../../../core/limits/limit-verdict.ts";
import type { VerdictReason } from "../../../core/serving/verdict.ts";

/** A message from a worker to main; any message back is the answer. */
export type DecisionBatch = {
  /** The decisions that the worker dropped since its start. */
  readonly dropped: number;
  /** One DecisionLine a line, as JSON. */
  readonly lines: string;
};

/** A decision as an array, since field names would be half of its text. */
export type DecisionLine = readonly [
  id: string,
  atMs: number,
  host: string,
  clientIp: string,
  userAgent: string | null,
  kind: "block" | "would-block" | LimitVerdict["kind"],
  reason: VerdictReason | LimitVerdict["reason"],
  bot: string | null,
  setKind: "vip" | "bad" | null,
  setHost: string | null,
  setVersion: number,
  policyOf: string | null,
  /** Of limits.requests, in words. */
  rule: string | null,
];

export const gatherMs = 50;
const idBytes = 8;
/**
 * The number of ids whose random bytes are drawn at once; drawing eight bytes for each would take longer than
 * all the rest.
 */
const idsAtOnce = 512;

const noSet = { set: undefined };

export class DecisionTeller implements Disposable {
  readonly #port: MessagePort;
  readonly #batchMax: number;
  readonly #random = Buffer.alloc(idBytes * idsAtOnce);
  #randomAt = this.#random.length;
  #lines = "";
  #count = 0;
  #dropped = 0;
  #told = 0;
  #awaits = false;
  #timer: NodeJS.Timeout | undefined;

  /** At most `batchMax` decisions wait for main. */
  constructor(port: MessagePort, batchMax: number) {
    this.#port = port;
    this.#batchMax = batchMax;
    port.on("message", () => {
      this.#awaits = false;
      this.#wake();
    });
    port.unref();
  }

  /** Notes a decision and returns its id, which is shown to the visitor. */
  note({ atMs, host, clientIp, userAgent, verdict, policyOf }: Decision): string {
    const id = this.#id();
    if (this.#count >= this.#batchMax) this.#dropped++;
    else {
      const { kind, reason, bot } = verdict;
      const { set } = "set" in verdict ? verdict : noSet;
      const line = [
        id,
        atMs,
        host,
        clientIp,
        userAgent?.slice(0, agentCharsMax) ?? null,
        // Allowed requests are not noted.
        kind === "allow" ? "block" : kind,
        reason,
        bot,
        set?.kind ?? null,
        set?.host ?? null,
        set?.version ?? 0,
        policyOf ?? null,
        "rule" in verdict ? verdict.rule : null,
      ] satisfies DecisionLine;
      this.#lines += `${JSON.stringify(line)}\n`;
      this.#count++;
    }
    this.#wake();
    return id;
  }

  #id(): string {
    if (this.#randomAt === this.#random.length) {
      randomFillSync(this.#random);
      this.#randomAt = 0;
    }
    const id = this.#random.toString("hex", this.#randomAt, this.#randomAt + idBytes);
    this.#randomAt += idBytes;
    return id;
  }

  #wake(): void {
    if (this.#awaits || (this.#count === 0 && this.#dropped === this.#told)) return;
    this.#timer ??= setTimeout(() => this.#tell(), gatherMs).unref();
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const message: DecisionBatch = { dropped: this.#dropped, lines: this.#lines };
    this.#port.postMessage(message, []);
    this.#awaits = true;
    this.#told = this.#dropped;
    this.#lines = "";
    this.#count = 0;
  }

  /** Tells the last decisions. It may be called while the thread exits. */
  [Symbol.dispose](): void {
    if (this.#count > 0) this.#tell();
    this.#port.close();
  }
}
