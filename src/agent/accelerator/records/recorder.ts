// From an exchange that has ended to its record and its metrics. Also for what never became an exchange: requests that the parser refused.

import { fieldValue } from "../../../core/http/http-fields.ts";
import { recordText } from "../../../core/record-text.ts";
import type { Verdict } from "../../../core/serving/verdict.ts";
import type { RequestRecord } from "../../../wire/request-log.ts";
import type { LaneWriter } from "../../requests/worker/lane-writer.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange, Connection } from "../doors/exchange.ts";
import type { RequestTally } from "./request-tally.ts";

// The limits of wire/request-log.ts, in UTF-16 units.
const uriCharsMax = 8_192;
const authorityCharsMax = 512;
const userAgentCharsMax = 1_024;
const methodCharsMax = 64;
const botCharsMax = 255;

export type Recorder = {
  readonly exchange: (exchange: Exchange, status: number) => void;
  readonly quick: (asked: QuickAsked, outcome: QuickOutcome) => void;
  /** `line` is what is known of the request line. */
  readonly refused: (connection: Connection, status: number, line: RequestLine) => void;
};

/** A request that was answered in one step. */
export type QuickAsked = {
  readonly connection: Connection;
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly userAgent: string | undefined;
  };
  readonly authority: string;
  readonly host: { readonly domain: string } | undefined;
  readonly client: Exchange["client"];
  readonly verdict: Verdict | undefined;
  readonly startedWallMs: number;
  readonly startedMs: number;
  /** Room was kept for its record. */
  readonly isClaimed: boolean;
};

export type QuickOutcome = {
  /** 499 where the visitor left before all of it had gone. */
  readonly status: number;
  readonly cache: RequestRecord["cache"];
  readonly bytesSent: number;
};

export type RequestLine = { readonly method: string; readonly target: string };

export function createRecorder(
  sink: Pick<LaneWriter, "accept">,
  tally: RequestTally,
  clock: WorkerClock,
): Recorder {
  const take = (record: RequestRecord, isClaimed = false): void => {
    tally.answered({
      domain: record.domain ?? "none",
      cache: record.cache,
      status: record.response_status,
      durationS: record.duration,
      bytesSent: record.bytes_sent,
    });
    sink.accept(record, isClaimed);
  };
  return {
    exchange: (exchange, status) =>
      take(
        {
          connection: exchange.connection.no,
          response_status: status,
          request_method: recordText(exchange.method, methodCharsMax),
          uri_path: recordText(exchange.request.url ?? "", uriCharsMax),
          backend_time: seconds(exchange.originMs),
          when: seconds(exchange.startedWallMs),
          authority: recordText(exchange.authority, authorityCharsMax),
          domain: exchange.domain,
          client_ip: exchange.client?.text ?? exchange.connection.peer?.text ?? "",
          bytes_sent: exchange.bytesSent,
          duration: seconds(clock.steadyMs() - exchange.startedMs),
          cache: exchange.cache,
          verdict: verdictText(exchange.verdict),
          bot: botText(exchange.verdict),
          user_agent: userAgentText(fieldValue(exchange.fields, "user-agent")),
        },
        exchange.hasRecordRoom,
      ),
    quick: (asked, outcome) => take(quickRecord(asked, outcome, clock), asked.isClaimed),
    refused: (connection, status, { method, target }) =>
      take({
        connection: connection.no,
        response_status: status,
        request_method: recordText(method, methodCharsMax),
        uri_path: recordText(target, uriCharsMax),
        backend_time: 0,
        when: seconds(clock.wallMs()),
        authority: "",
        domain: null,
        client_ip: connection.peer?.text ?? "",
        bytes_sent: connection.takeBytesSent(),
        duration: 0,
        cache: "none",
        verdict: verdictText(undefined),
        bot: null,
        user_agent: null,
      }),
  };
}

function quickRecord(
  { connection, request, authority, host, client, verdict, startedWallMs, startedMs }: QuickAsked,
  { status, cache, bytesSent }: QuickOutcome,
  clock: WorkerClock,
): RequestRecord {
  return {
    connection: connection.no,
    response_status: status,
    request_method: request.method,
    uri_path: recordText(request.url, uriCharsMax),
    backend_time: 0,
    when: seconds(startedWallMs),
    authority: recordText(authority, authorityCharsMax),
    domain: host?.domain ?? null,
    client_ip: client?.text ?? connection.peer?.text ?? "",
    bytes_sent: bytesSent,
    duration: seconds(clock.steadyMs() - startedMs),
    cache,
    verdict: verdictText(verdict),
    bot: botText(verdict),
    user_agent: userAgentText(request.userAgent),
  };
}

/** Microseconds behind the point. */
function seconds(ms: number): number {
  return Math.max(0, Math.round(ms * 1_000)) / 1_000_000;
}

/** `allow not-a-bot`, `block bad-set`; "none" for what was answered before the verdict. */
function verdictText(verdict: Verdict | undefined): string {
  return verdict === undefined ? "none" : `${verdict.kind} ${verdict.reason}`;
}

function botText(verdict: Verdict | undefined): string | null {
  const bot = verdict?.bot ?? null;
  return bot === null ? null : recordText(bot, botCharsMax);
}

function userAgentText(userAgent: string | undefined): string | null {
  return userAgent === undefined ? null : recordText(userAgent, userAgentCharsMax);
}
