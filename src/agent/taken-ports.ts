// What `join` says where the agent could not listen: which ports others have, and which ones to write instead.

import { listenText } from "../base/settings-fields.ts";
import { AccelError } from "../core/faults.ts";
import { portsOfItsOwn, type TakenPort } from "./doctor/ports.ts";
import type { AgentSettings } from "./settings/fields.ts";

type Ports = Pick<
  AgentSettings,
  "accelerator.listen" | "accelerator.tls_listen" | "metrics.listen"
>;

/** Makes PORT_TAKEN, with ports that neither these settings nor the `others` of the host have. */
export function takenPortsFault(
  {
    config,
    settings,
    others,
  }: {
    readonly config: string;
    readonly settings: Ports;
    readonly others: readonly { readonly settings: Ports }[];
  },
  taken: readonly TakenPort[],
): AccelError {
  const used = new Set([settings, ...others.map((other) => other.settings)].flatMap(portsOf));
  const instead = taken.map(({ key, address }) => {
    let port = address.port < 1_024 ? address.port + 8_000 : address.port + 1;
    while (used.has(port)) port++;
    used.add(port);
    const text = listenText({ ...address, port });
    // YAML would take the bracket for a list.
    return `  ${key}: ${text.startsWith("[") ? JSON.stringify(text) : text}`;
  });
  return new AccelError(
    "PORT_TAKEN",
    [
      "nothing was changed and no code was used, for the agent could not listen:",
      ...taken.map(({ text }) => `  ${text}`),
      `write other ports to ${config} and join again, such as:`,
      ...instead,
    ].join("\n"),
    // What serves there is not to be stopped.
    taken.every((one) => one.config !== undefined) ? { hint: portsOfItsOwn } : {},
  );
}

const portsOf = (settings: Ports): readonly number[] =>
  [
    settings["accelerator.listen"],
    settings["accelerator.tls_listen"],
    settings["metrics.listen"],
  ].flatMap((address) => (address === undefined ? [] : [address.port]));
