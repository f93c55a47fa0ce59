// From an exchange that has ended to its record and its metrics. Also for what never became an exchange: requests that the parser refused.

import { fieldValue } from "../../../core/http/http-fields.ts";
import { toldVerdict } from "../../../core/limits/limit-verdict.ts";
import { recordText } from "../../../core/record-text.ts";
import type { RequestRecord } from "../../../wire/request-log.ts";
import type { LaneWriter } from "../../requests/worker/lane-writer.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange, Connection } from "../doors/exchange.ts";
import {
  authorityCharsMax,
  botText,
  methodCharsMax,
  recordLine,
  seconds,
  uriCharsMax,
  userAgentText,
  verdictText,
} from "./record-line.ts";
import type { RequestTally } from "./request-tally.ts";

export type Recorder = {
  readonly exchange: (exchange: Exchange, status: number) => void;
  readonly quick: (asked: QuickAsked, outcome: QuickOutcome) => void;
  /** `line` is what is known of the request line. */
  readonly refused: (connection: Connection, status: number, line: RequestLine) => void;
};

/** A request that was answered in one step. */
export type QuickAsked = {
  readonly connection: Connection;
  readonly request: { readonly method: "GET" | "HEAD" };
  readonly host: { readonly domain: string } | undefined;
  /** Of record-line.ts. */
  readonly targetPart: string;
  readonly visitorPart: string;
  readonly startedWallMs: number;
  readonly startedMs: number;
  /** Room was kept for its record. */
  readonly isClaimed: boolean;
};

export type QuickOutcome = {
  /** 499 where the visitor left, or was cut off, before all of it had gone. */
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
    exchange: (exchange, status) => {
      const told = toldVerdict(exchange.verdict, exchange.limit);
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
          verdict: verdictText(told),
          bot: botText(told),
          user_agent: userAgentText(fieldValue(exchange.fields, "user-agent")),
        },
        exchange.hasRecordRoom,
      );
    },
    quick: (asked, { status, cache, bytesSent }) => {
      const { connection, request, host, startedWallMs: whenMs, startedMs } = asked;
      const durationMs = clock.steadyMs() - startedMs;
      const { method } = request;
      const durationS = seconds(durationMs);
      tally.answered({ domain: host?.domain ?? "none", cache, status, durationS, bytesSent });
      const facts = { connection: connection.no, status, method, whenMs, durationMs, bytesSent };
      const line = recordLine({ ...facts, cache }, asked.targetPart, asked.visitorPart);
      sink.accept(line, asked.isClaimed);
    },
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
