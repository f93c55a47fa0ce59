// A canary as a line of its lane. Lines of records and gaps begin differently.

import { decodeCanaryLine } from "../../../wire/request-log.ts";

const canaryBegin = new TextEncoder().encode('{"canary":');

export function isCanaryLine(line: Uint8Array): boolean {
  return canaryBegin.every((byte, at) => line[at] === byte);
}

/** Returns when a canary was sent, in seconds since the epoch, or undefined if `line` is none. */
export function canaryOf(line: Uint8Array): number | undefined {
  if (!isCanaryLine(line)) return undefined;
  const decoded = decodeCanaryLine(JSON.parse(new TextDecoder().decode(line)));
  return decoded.ok ? decoded.value.canary.at : undefined;
}
