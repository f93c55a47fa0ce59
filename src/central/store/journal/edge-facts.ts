// The edge facts that an agent told, as stored: JSON that was decoded when it arrived, decoded again since releases differ.

import { decoder } from "../../../wire/validate.ts";
import { EdgeFacts } from "../../../wire/channel.ts";

const decode = decoder(EdgeFacts);

/** Undefined for what another release stored and this one does not understand. */
export function decodeEdgeFacts(json: string): EdgeFacts | undefined {
  const decoded = decode(JSON.parse(json));
  return decoded.ok ? decoded.value : undefined;
}
