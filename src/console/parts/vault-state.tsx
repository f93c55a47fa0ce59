// Whether the hosts of a site have what its vault holds: its certificates, or its keys.

import type { JSX } from "preact";
import type { Certificate } from "../../wire/customer/certificate.ts";
import { visibleText } from "../visible-text.ts";
import { Badge, type Tone } from "./pieces.tsx";

/** No hint tells that a host has taken them: this is asked for. */
export const provedEveryMs = 10_000;

type State = Certificate["state"];

const words: Readonly<Record<State, readonly [tone: Tone, text: string]>> = {
  applied: ["good", "on the hosts"],
  pending: ["warn", "on its way"],
  failed: ["bad", "failed"],
  absent: ["plain", "no host yet"],
};

export function VaultState({
  state,
  error,
}: {
  readonly state: State;
  readonly error: string | undefined;
}): JSX.Element {
  const [tone, text] = words[state];
  return (
    <>
      <Badge tone={tone}>{text}</Badge> {error !== undefined && visibleText(error)}
    </>
  );
}
