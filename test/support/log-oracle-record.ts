// One record at central beside the request that it is of: every field, as far as the visitor can know it.

import {
  decodeCanaryLine,
  decodeRequestRecord,
  type RequestRecord,
} from "../../src/wire/request-log.ts";
import type { Claim } from "./log-oracle-producer.ts";
import type { ClockStep } from "./log-oracle-scene.ts";

/** The record of a line; undefined for a canary. Throws for what is neither. */
export function parseRecord(line: string): RequestRecord | undefined {
  const raw: unknown = JSON.parse(line);
  const record = decodeRequestRecord(raw);
  if (record.ok) return record.value;
  if (decodeCanaryLine(raw).ok) return undefined;
  throw new TypeError(`no record: ${line.slice(0, 300)}`);
}

/** The number that the visitor put into the path. */
export function claimIdOf({ uri_path: path }: RequestRecord): number | undefined {
  const no = /^\/page\/(\d+)(?![\w])/.exec(path)?.[1];
  return no === undefined ? undefined : Number(no);
}

/** A jump reaches the program a moment later, and the stamp of a request that waits in a socket is taken late. */
const clockSlackMs = 400;
/** Header fields of an answer. */
const headBytesMax = 2_000;
/** Both are taken by the agent, one after the other. */
const backendSlackS = 0.05;
/** A visitor may have the last byte long before a busy machine lets the agent note that it was sent. */
const durationSlackS = 2;

/** What is not valid; empty when the record is right. */
export function differences(
  record: RequestRecord,
  claim: Claim,
  clockSteps: readonly ClockStep[],
): readonly string[] {
  const expected = {
    request_method: claim.method,
    uri_path: claim.expectedUri,
    authority: claim.authority,
    domain: claim.domain,
    client_ip: claim.clientIp,
    user_agent: claim.expectedUserAgent,
    bot: null,
    ...(claim.answer === undefined ? {} : { response_status: claim.answer.status }),
  };
  const wrong = Object.entries(expected)
    .filter(([name, value]) => record[name as keyof RequestRecord] !== value) // Their names are the record's.
    .map(
      ([name, value]) =>
        `${name}: ${show(record[name as keyof RequestRecord])}, not ${show(value)}`,
    );
  const endMs = claim.answer?.atMs ?? claim.sentMs + 10_000;
  if (!isWithin(record.when * 1_000, claim.sentMs, endMs, clockSteps))
    wrong.push(`when: ${record.when} for ${claim.sentMs} to ${endMs}`);
  if (!/^(allow|block|none)\b/.test(record.verdict)) wrong.push(`verdict: ${record.verdict}`);
  if (record.backend_time > record.duration + backendSlackS)
    wrong.push(`backend_time: ${record.backend_time} of ${record.duration}`);
  if (record.connection < 1) wrong.push(`connection: ${record.connection}`);
  return [...wrong, ...answerDifferences(record, claim)];
}

function answerDifferences(record: RequestRecord, { answer, sentMs }: Claim): readonly string[] {
  if (answer === undefined) return [];
  const wrong: string[] = [];
  const { bodyBytes, isHit, atMs } = answer;
  if (record.bytes_sent < bodyBytes || record.bytes_sent > bodyBytes + headBytesMax)
    wrong.push(`bytes_sent: ${record.bytes_sent} for a body of ${bodyBytes}`);
  if ((record.cache === "hit") !== isHit) wrong.push(`cache: ${record.cache}, hit: ${isHit}`);
  if (record.duration > (atMs - sentMs) / 1_000 + durationSlackS)
    wrong.push(`duration: ${record.duration} of ${atMs - sentMs} ms`);
  return wrong;
}

/** By any offset that the agent's clock had in the meantime. */
function isWithin(
  atMs: number,
  fromMs: number,
  toMs: number,
  steps: readonly ClockStep[],
): boolean {
  return steps.some(({ sinceMs, offsetMs }, no) => {
    const untilMs = steps[no + 1]?.sinceMs ?? Infinity;
    const isInForce = sinceMs - clockSlackMs <= toMs && fromMs <= untilMs + clockSlackMs;
    return (
      isInForce &&
      fromMs + offsetMs - clockSlackMs <= atMs &&
      atMs <= toMs + offsetMs + clockSlackMs
    );
  });
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? "nothing";
}
