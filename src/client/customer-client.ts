// The customer API as typed calls. Every method rejects with ApiError if central refuses, and with
// API_UNREACHABLE if it cannot be asked.

import { botClient, type BotClient } from "./bots.ts";
import { contentClient, type ContentClient } from "./content.ts";
import { noticeClient, type NoticeClient } from "./notices.ts";
import { observationClient, type ObservationClient } from "./observation.ts";
import { ownershipClient, type OwnershipClient } from "./ownership.ts";
import { packageClient, type PackageClient } from "./packages.ts";
import { tokenClient, type TokenClient } from "./tokens.ts";
import { vaultClient, type VaultClient } from "./vault.ts";
import { openTransport } from "./transport.ts";

export type CustomerClientOptions = {
  /** Central's address, such as `https://central.example.com`. */
  readonly baseUrl: string;
  /** Needed by every call but `trial` and `startRecovery`. */
  readonly token?: string;
  /** The time after which a call without an answer fails. A clear waits at central for up to 30 s. */
  readonly timeoutMs?: number;
};

export type CustomerClient = AsyncDisposable &
  OwnershipClient &
  TokenClient &
  VaultClient &
  ContentClient &
  BotClient &
  ObservationClient &
  PackageClient &
  NoticeClient;

const timeoutDefaultMs = 60_000;

/** Keeps connections; dispose of it when done. */
export function createCustomerClient(options: CustomerClientOptions): CustomerClient {
  const { baseUrl, token, timeoutMs = timeoutDefaultMs } = options;
  const transport = openTransport({ baseUrl, token, timeoutMs });
  return {
    ...ownershipClient(transport),
    ...tokenClient(transport),
    ...vaultClient(transport),
    ...contentClient(transport),
    ...botClient(transport),
    ...observationClient(transport),
    ...packageClient(transport),
    ...noticeClient(transport),
    [Symbol.asyncDispose]: async () => transport[Symbol.asyncDispose](),
  };
}
