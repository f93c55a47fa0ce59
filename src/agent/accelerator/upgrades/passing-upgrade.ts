// From the plan's step "upgrade" to the answer: the origin is asked, its 101 joins both connections, any other answer of it is relayed as a plain one.

import { withEdits } from "../../../core/http/header-edits.ts";
import { createHash } from "node:crypto";
import {
  fieldValue,
  withoutHopByHop,
  withoutFields,
  type Field,
} from "../../../core/http/http-fields.ts";
import { asksForWebSocket } from "../../../core/serving/request-check.ts";
import type { ServedSite } from "../pool/host-table.ts";
import { sendText } from "../doors/answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import {
  answerFailure,
  OriginEnding,
  passedFields,
  relay,
  type OriginDeps,
} from "../origin/origin-answer.ts";
import { upgradeFields } from "../origin/origin-request.ts";
import type { UpgradeOutcome } from "../origin/origin-upgrade.ts";
import { Joint, type UpgradeEnd } from "./joint.ts";
import type { OpenUpgrades } from "./open-upgrades.ts";

export type UpgradeDeps = OriginDeps & { readonly upgrades: OpenUpgrades };

export type UpgradeAsked = {
  readonly exchange: Exchange;
  readonly site: ServedSite;
  readonly path: string;
  /** The version of the state by which the visitor was let in. */
  readonly judgedBy: number;
  /** Judges the visitor by the state in force. */
  readonly isWelcome: () => boolean;
};

type Switched = Extract<UpgradeOutcome, { readonly kind: "switched" }>;

/** Resolves when the connections are joined, or a plain answer has been handed over. Throws when the answer must break. */
export async function passUpgrade(deps: UpgradeDeps, asked: UpgradeAsked): Promise<void> {
  const { exchange } = asked;
  const domain = asked.site.site.main_domain;
  const count = (outcome: "switched" | "declined" | "failed" | "refused"): void =>
    deps.metrics.accel_agent_upgrades_total.inc({ domain, outcome });
  if (!exchange.canSwitch || !deps.upgrades.enter()) {
    count("refused");
    const text = exchange.canSwitch
      ? "Too many connections are open for protocols other than HTTP."
      : "The protocol cannot be switched behind a request that is still being answered.";
    sendText(exchange, 503, text, [["Retry-After", "1"]]);
    return;
  }
  let isOpen = false;
  try {
    const outcome = await ask(deps, asked);
    if (outcome.kind === "switched" && !isProven(exchange, outcome.fields)) {
      count("failed");
      outcome.socket.destroy();
      answerFailure(exchange, "broken");
    } else if (outcome.kind === "switched") {
      isOpen = join(deps, asked, outcome);
      count(isOpen ? "switched" : "failed");
    } else if (outcome.kind === "answered") {
      count("declined");
      using origin = new OriginEnding(outcome, deps, exchange);
      const { status } = outcome;
      const fields = passedFields(outcome);
      const relayed = { status, fields, cacheStatus: passed, origin };
      await relay(exchange, asked.site.site.headers, outcome, relayed);
    } else {
      count("failed");
      if (!exchange.stop.aborted) answerFailure(exchange, outcome.failure.kind);
    }
  } finally {
    if (!isOpen) deps.upgrades.leave();
  }
}

const passed = "fwd=request; detail=upgrade";

async function ask(
  { origins, clock, metrics, problems }: UpgradeDeps,
  { exchange, site: { site }, path }: UpgradeAsked,
): Promise<UpgradeOutcome> {
  const { backend, main_domain: domain, host } = site;
  if (backend === null) throw new TypeError("only a site with an origin passes an upgrade on");
  const startedMs = clock.steadyMs();
  const { method, stop } = exchange;
  const fields = upgradeFields(exchange, host, backend);
  const outcome = await origins.askUpgrade(domain, backend, { method, path, fields, stop });
  exchange.originMs = clock.steadyMs() - startedMs;
  metrics.origin.took(domain, exchange.originMs / 1_000);
  if (!stop.aborted || outcome.kind !== "failed") metrics.origin.asked(domain);
  if (!stop.aborted && outcome.kind === "failed") {
    metrics.accel_agent_origin_errors_total.inc({ domain, kind: outcome.failure.kind });
    problems.tell("warn", domain, "origin gave no answer", outcome.failure.reason);
  }
  if (outcome.kind === "answered" && outcome.status >= 500)
    metrics.accel_agent_origin_server_errors_total.inc({ domain });
  return outcome;
}

/** Returns whether the connections are joined; false: the visitor has left, and the origin's connection is closed. */
function join(deps: UpgradeDeps, asked: UpgradeAsked, origin: Switched): boolean {
  const { exchange, site } = asked;
  // Whom a state that came meanwhile has turned against is told at the next look.
  if (exchange.stop.aborted || exchange.isGone) {
    origin.socket.destroy();
    return false;
  }
  let joint: Joint | undefined;
  let ended: ((end: UpgradeEnd) => void) | undefined;
  const fields = withEdits(switchFields(origin.fields), site.site.headers);
  const visitor = exchange.takeOver(fields, {
    part: () => joint?.part("drained"),
    bytesSent: () => joint?.sentBytes ?? 0,
  });
  if (origin.early.length > 0) origin.socket.unshift(origin.early);
  joint = new Joint({
    visitor,
    origin: origin.socket,
    isWebSocket: asksForWebSocket(exchange.fields),
    steadyMs: deps.clock.steadyMs,
    onEnd: (end) => ended?.(end),
  });
  const domain = site.site.main_domain;
  ended = deps.upgrades.opened({ joint, domain, isWelcome: asked.isWelcome }, asked.judgedBy);
  return true;
}

/** A 101 has no body, and no length of one. */
const ofBodies: ReadonlySet<string> = new Set(["content-length", "x-accel-decision"]);
const ofUpgrade: ReadonlySet<string> = new Set(["connection", "upgrade"]);

/** Returns the fields of the origin's 101, Connection and Upgrade among them. */
function switchFields(fields: readonly Field[]): readonly Field[] {
  const sent = fields.filter(([name]) => ofUpgrade.has(name.toLowerCase()));
  return [...withoutFields(withoutHopByHop(fields), ofBodies), ...sent];
}

/**
 * Whether the origin has read the key (RFC 6455 §4.1). Visitors of HTTP/1.1 see for themselves; those of HTTP/2
 * know nothing of the key that was made for them.
 */
function isProven({ httpVersion, fields }: Exchange, said: readonly Field[]): boolean {
  if (httpVersion !== "2") return true;
  const key = fieldValue(fields, "sec-websocket-key") ?? "";
  const proof = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  return fieldValue(said, "sec-websocket-accept") === proof.digest("base64");
}
